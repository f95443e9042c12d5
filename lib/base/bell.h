/* SPDX-License-Identifier: MIT */
/*
 * A bell is an eventfd that is used as a flag: readable or not. One wakes a hub's owner, and one in
 * each queue is what consumers poll. The bells of store and relay wake their threads, and programs
 * that poll them.
 */
#ifndef TIMERHUB_BELL_H
#define TIMERHUB_BELL_H

#include <sys/uio.h>

#include "base/atomic.h"

/* The buffers for the eventfd, in a page that is zero in a forked child (fork_check.h). */
struct bell_words {
	struct iovec ring, clear;
	uint64_t one, count;
};

void bell_words_init(struct bell_words *words);

/* Opens an eventfd that does not block. Fails also if a seccomp filter refuses writes to it. */
int bell_open(void);

void bell_close(int fd);

/* Makes the bell readable, with a new edge for those who poll it. Signal handlers may call it. */
void bell_ring(int fd);

/* Reads the eventfd, so that it is not readable until the next bell_ring(). */
void bell_clear(int fd);

/*
 * Write to the eventfd, and read it. In a forked child the buffers are zero, so nothing is
 * transferred.
 */
void bell_ring_by(int fd, const struct bell_words *words);
void bell_clear_by(int fd, const struct bell_words *words);

/* Counts the writes to an eventfd, so that bell_clear_counted() reads it only after a new one. */
struct bell_counts {
	atomic_u64
		writes; /* in the low 16 bits those in progress, above them those that have ended */
	atomic_u64 cleared; /* how many had ended when the bell was last cleared */
};

void bell_ring_counted(int fd, const struct bell_words *words, struct bell_counts *counts);
void bell_clear_counted(int fd, const struct bell_words *words, struct bell_counts *counts);

#endif
