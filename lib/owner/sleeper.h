/* SPDX-License-Identifier: MIT */
/*
 * How the owner sleeps: until a time is over, its bell is rung or its timerfd goes off. There are
 * two sleepers: sleeper_uring.c where the kernel allows io_uring, sleeper_poll.c everywhere.
 */
#ifndef TIMERHUB_SLEEPER_H
#define TIMERHUB_SLEEPER_H

#include <stdint.h>

/*
 * Interruptions in a row that are taken for what they are. A kernel or filter that says nothing
 * else does not let us sleep, and the CPU is not to burn for it.
 */
#define SLEEPER_INTERRUPTIONS_MAX 16

struct sleeper;

struct sleeper_ops {
	/* Owner's thread, first of all: 0 or a negative errno. */
	int (*start)(struct sleeper *sleeper);
	/*
	 * Owner's thread: sleep up to `timeout_ns` (UINT64_MAX: for ever) or until the bell was
	 * rung, also if that was before. May return for no reason; only the clock says what is
	 * due. 0, or a negative errno if it could not sleep at all.
	 */
	int (*sleep)(struct sleeper *sleeper, uint64_t timeout_ns);
	/* Any thread, when the owner is gone or never was. */
	void (*close)(struct sleeper *sleeper);
};

struct sleeper {
	const struct sleeper_ops *ops;
	int bell; /* the eventfd that ends a sleep; not ours to close */
	/*
	 * Another fd that does when it is readable, or -1; not ours to close or clear. The owner
	 * changes it between sleeps; the io_uring way polls the one of its open for edges, and
	 * takes no notice.
	 */
	int deadline_fd;
	void *state;            /* the way's own */
	unsigned interruptions; /* in a row; the way's own, too */
};

/* 0, or the negative errno with which the kernel refused. */
int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd);

/* Cannot fail. */
void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd);

#endif
