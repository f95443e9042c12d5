/* SPDX-License-Identifier: MIT */
/* An eventfd as a flag: one wakes the owner, and one in each queue is what consumers poll. */
#ifndef TIMERHUB_BELL_H
#define TIMERHUB_BELL_H

#include <sys/uio.h>

#include "base/atomic.h"

/*
 * What a call hands to the kernel: in the page of fork_check.h, so zero in a forked child. A call
 * split by a signal handler's fork moves no bytes of the parent's eventfd there.
 */
struct bell_words {
	struct iovec ring, clear;
	uint64_t one, count;
};

void bell_words_init(struct bell_words *words);

/* Non-blocking and close-on-exec, or a negative errno: also if it could not ring. */
int bell_open(void);
void bell_close(int fd);

/* Thread-safe and async-signal-safe. */
void bell_ring(int fd);

/* Make the bell unreadable. */
void bell_clear(int fd);

void bell_ring_by(int fd, const struct bell_words *words);
void bell_clear_by(int fd, const struct bell_words *words);

/* For a bell that many ring: a clear makes no system call if none has. */
struct bell_counts {
	atomic_u64 writes; /* low 16 bits: writes in progress; above: those that have ended */
	atomic_u64 cleared;
};

void bell_ring_counted(int fd, const struct bell_words *words, struct bell_counts *counts);
void bell_clear_counted(int fd, const struct bell_words *words, struct bell_counts *counts);

#endif
