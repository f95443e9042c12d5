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

/*
 * The buffers with which a bell is written and read. They lie in a page that is zero in a forked
 * child (fork_check.h). If a signal handler forks in the middle of a call, the rest of the call in
 * the child therefore moves no byte of the parent's eventfd.
 */
struct bell_words {
	struct iovec ring, clear;
	uint64_t one, count;
};

void bell_words_init(struct bell_words *words);

/*
 * Opens a bell: an eventfd that does not block. Fails also if a seccomp filter refuses writes to
 * it, because later nobody would notice that.
 */
int bell_open(void);

void bell_close(int fd);

/*
 * Makes the bell readable, and gives those who poll it a new edge. Any thread can call it, and so
 * can a signal handler.
 */
void bell_ring(int fd);

/* Reads the eventfd, so that it is not readable until the next bell_ring(). */
void bell_clear(int fd);

/*
 * Like bell_ring() and bell_clear(), but they use the buffers in *words. If *words is all zero,
 * they do nothing.
 */
void bell_ring_by(int fd, const struct bell_words *words);
void bell_clear_by(int fd, const struct bell_words *words);

/*
 * Counts the writes to an eventfd. If there was none since the eventfd was last read,
 * bell_clear_counted() does not read it again, which saves a system call.
 */
struct bell_counts {
	atomic_u64
		writes; /* in the low 16 bits those in progress, above them those that have ended */
	atomic_u64 cleared; /* how many had ended when the bell was last cleared */
};

void bell_ring_counted(int fd, const struct bell_words *words, struct bell_counts *counts);
void bell_clear_counted(int fd, const struct bell_words *words, struct bell_counts *counts);

#endif
