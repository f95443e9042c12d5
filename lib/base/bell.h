/* SPDX-License-Identifier: MIT */
/*
 * A bell is an eventfd that is used as a flag: readable or not. One wakes the owner, and one in
 * each queue is what consumers poll. Those of store and relay wake their threads, and programs that
 * poll them.
 */
#ifndef TIMERHUB_BELL_H
#define TIMERHUB_BELL_H

#include <sys/uio.h>

#include "base/atomic.h"

/*
 * What a ring and a clear hand to the kernel. It lies in a page that is zero in a forked child
 * (fork_check.h). If a signal handler forks in the middle of a call, the rest of the call in the
 * child therefore moves no byte of the parent's eventfd.
 */
struct bell_words {
	struct iovec ring, clear;
	uint64_t one, count;
};

void bell_words_init(struct bell_words *words);

/*
 * Opens a bell, which does not block and is closed on exec. Returns its descriptor, or a negative
 * errno, also if a filter would not let it ring, because nobody could see that later.
 */
int bell_open(void);

/* Closes a bell. */
void bell_close(int fd);

/* Makes the bell readable, with a new edge. Any thread can call it, and so can a signal handler. */
void bell_ring(int fd);

/* Makes the bell unreadable. */
void bell_clear(int fd);

/* Ring and clear a bell of which a forked child may have a copy. */
void bell_ring_by(int fd, const struct bell_words *words);
void bell_clear_by(int fd, const struct bell_words *words);

/*
 * Counts the rings of a bell that many threads ring, so that a clear after no ring costs nothing.
 */
struct bell_counts {
	atomic_u64
		writes; /* in the low 16 bits those in progress, above them those that have ended */
	atomic_u64 cleared; /* how many had ended when the bell was last cleared */
};

void bell_ring_counted(int fd, const struct bell_words *words, struct bell_counts *counts);
void bell_clear_counted(int fd, const struct bell_words *words, struct bell_counts *counts);

#endif
