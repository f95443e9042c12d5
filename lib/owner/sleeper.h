/* SPDX-License-Identifier: MIT */
/*
 * A sleeper is what the owner's thread sleeps in until its next timer is due, or until a caller
 * rings the bell, the eventfd that wakes the owner. There are two of them: sleeper_uring.c sleeps
 * in io_uring, where the kernel allows it, and sleeper_poll.c in ppoll(2), which works everywhere.
 * Neither of them reads or closes the timerfd.
 */
#ifndef TIMERHUB_SLEEPER_H
#define TIMERHUB_SLEEPER_H

#include <stdint.h>

/*
 * How many times in a row a sleep may end with EINTR before that is an error. Without a limit, a
 * kernel or a filter that always answers EINTR would keep a CPU busy.
 */
#define SLEEPER_INTERRUPTIONS_MAX 16

struct sleeper;

struct sleeper_ops {
	/*
	 * Prepares the sleeper and the calling thread for sleep(). Only this thread may call
	 * sleep() afterwards. Returns 0 or a negative errno.
	 */
	int (*start)(struct sleeper *sleeper);
	/*
	 * Sleeps until `timeout_ns` have passed (UINT64_MAX: no limit), or the eventfd `bell` has
	 * been written to since the last sleep. May end early. Returns 0 or a negative errno.
	 */
	int (*sleep)(struct sleeper *sleeper, uint64_t timeout_ns);
	/*
	 * If the sleeper has an io_uring ring, closes the ring and frees its memory. Must be called
	 * by the thread that calls sleep(), or while no such thread runs.
	 */
	void (*close)(struct sleeper *sleeper);
};

struct sleeper {
	const struct sleeper_ops *ops;
	int bell; /* eventfd that ends a sleep; the sleeper clears it if it needs to */
	/*
	 * The timerfd that ends a sleep when it expires, or -1. While the sleeper is open, this may
	 * be set to -1 and back, but never to another timerfd, because sleeper_uring.c polls only
	 * the first one.
	 */
	int deadline_fd;
	void *state;            /* what sleeper_uring.c needs; NULL in sleeper_poll.c */
	unsigned interruptions; /* how many sleeps in a row have ended with EINTR */
};

/*
 * Sets up a sleeper that sleeps in io_uring. It must be called by the thread that will sleep
 * (sleeper_uring.c says why). Returns 0, or a negative errno, for instance if the kernel forbids
 * io_uring or lacks a feature that the sleeper needs.
 */
int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd);

/* Opens a sleeper that sleeps in ppoll(2). It always succeeds. */
void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd);

#endif
