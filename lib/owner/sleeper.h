/* SPDX-License-Identifier: MIT */
/*
 * A sleeper is what the owner's thread sleeps in until its next timer is due, or until a caller
 * rings the bell, the eventfd that wakes the owner. There are two of them: sleeper_uring.c sleeps
 * in io_uring, where the kernel allows it, and sleeper_poll.c in ppoll(2), which works everywhere.
 */
#ifndef TIMERHUB_SLEEPER_H
#define TIMERHUB_SLEEPER_H

#include <stdint.h>

/*
 * So many sleeps in a row may end with EINTR. More are an error, because they would keep a CPU
 * busy.
 */
#define SLEEPER_INTERRUPTIONS_MAX 16

struct sleeper;

struct sleeper_ops {
	/*
	 * Prepares the calling thread, the only one that may call sleep(). Returns 0 or a negative
	 * errno.
	 */
	int (*start)(struct sleeper *sleeper);
	/*
	 * Sleeps until the bell rings or `timeout_ns` have passed (UINT64_MAX: no limit), or
	 * shorter. Returns 0 or a negative errno.
	 */
	int (*sleep)(struct sleeper *sleeper, uint64_t timeout_ns);
	/* Closes the ring, if there is one. Only for the thread that sleeps, or after its end. */
	void (*close)(struct sleeper *sleeper);
};

struct sleeper {
	const struct sleeper_ops *ops;
	int bell; /* eventfd that ends a sleep; the sleeper clears it if it needs to */
	/*
	 * A timerfd whose expiry ends a sleep, or -1. io_uring keeps the first one, so never
	 * replace it.
	 */
	int deadline_fd;
	void *state;            /* what sleeper_uring.c needs; NULL in sleeper_poll.c */
	unsigned interruptions; /* how many sleeps in a row have ended with EINTR */
};

/* Opens a sleeper in io_uring on the thread that will sleep. Returns 0 or a negative errno. */
int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd);

/* Opens a sleeper that sleeps in ppoll(2). It always succeeds. */
void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd);

#endif
