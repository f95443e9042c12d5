/* SPDX-License-Identifier: MIT */
/*
 * A bell is an eventfd that is used as a flag, readable or unreadable. The owner has a bell that
 * wakes it. Each queue has a bell, which its consumers poll.
 */
#ifndef TIMERHUB_BELL_H
#define TIMERHUB_BELL_H

#include <stdint.h>
#include <sys/uio.h>

/*
 * The data that a call on a bell hands to the kernel. In the page of fork_check.h it is zero in a
 * forked child. So a call that a signal handler's fork has split does nothing to the parent's
 * eventfd in the child, at whichever instruction it was: the kernel finds no bytes to move.
 */
struct bell_words {
	struct iovec ring, clear;
	uint64_t one, count;
};

void bell_words_init(struct bell_words *words);

/* Returns an eventfd, non-blocking and close-on-exec, or a negative errno. */
int bell_open(void);
void bell_close(int fd);

/* Make the bell readable. Thread-safe and async-signal-safe. */
void bell_ring(int fd);

/* Make the bell unreadable. */
void bell_clear(int fd);

/* The same, with these words. */
void bell_ring_by(int fd, const struct bell_words *words);
void bell_clear_by(int fd, const struct bell_words *words);

#endif
