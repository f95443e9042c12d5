/* SPDX-License-Identifier: MIT */
/*
 * Lets the owner sleep until a timeout ends, its eventfd (the bell) is signalled, or its timerfd
 * expires. There are two sleepers: sleeper_uring.c where the kernel allows io_uring, sleeper_poll.c
 * everywhere.
 */
#ifndef TIMERHUB_SLEEPER_H
#define TIMERHUB_SLEEPER_H

#include <stdint.h>

/*
 * A sleep that a signal interrupts this often in a row is treated as an error. A kernel or a
 * seccomp filter may return EINTR every time; the owner would then never sleep, and keep a CPU
 * busy.
 */
#define SLEEPER_INTERRUPTIONS_MAX 16

struct sleeper;

struct sleeper_ops {
	/* Owner's thread, before any other call: returns 0 or a negative errno. */
	int (*start)(struct sleeper *sleeper);
	/*
	 * Owner's thread: sleep for `timeout_ns` (UINT64_MAX: no limit), or until the bell is
	 * signalled, even if it was signalled before the call. May return early: only the clock
	 * says which timers are due. Returns 0, or a negative errno if it could not sleep at all.
	 */
	int (*sleep)(struct sleeper *sleeper, uint64_t timeout_ns);
	/* Any thread, when the owner has ended or never ran. */
	void (*close)(struct sleeper *sleeper);
};

struct sleeper {
	const struct sleeper_ops *ops;
	int bell; /* the eventfd that ends a sleep; the hub closes it */
	/*
	 * The timerfd, which ends a sleep while it is readable, or -1. The sleeper neither closes
	 * nor clears it. The owner may change it between sleeps. sleeper_uring.c ignores such a
	 * change: it polls the timerfd that it was opened with, edge-triggered.
	 */
	int deadline_fd;
	void *state;            /* private to the sleeper */
	unsigned interruptions; /* in a row; private to the sleeper */
};

/* Returns 0, or the negative errno with which the kernel refused. */
int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd);

/* Cannot fail. */
void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd);

#endif
