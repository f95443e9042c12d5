/* SPDX-License-Identifier: MIT */
/* sleeper_uring.c where the kernel allows io_uring, sleeper_poll.c everywhere. */
#ifndef TIMERHUB_SLEEPER_H
#define TIMERHUB_SLEEPER_H

#include <stdint.h>

/*
 * So many EINTR in a row are an error: a kernel or filter that always says so would keep a CPU
 * busy.
 */
#define SLEEPER_INTERRUPTIONS_MAX 16

struct sleeper;

struct sleeper_ops {
	/* In the owner's thread, like sleep(). 0 or a negative errno. */
	int (*start)(struct sleeper *sleeper);
	/*
	 * Until the bell, at once if it was signalled already, at most `timeout_ns` (UINT64_MAX: no
	 * limit). May return early: the owner reads the clock. A negative errno: it could not
	 * sleep.
	 */
	int (*sleep)(struct sleeper *sleeper, uint64_t timeout_ns);
	/* Or while that thread does not run. */
	void (*close)(struct sleeper *sleeper);
};

struct sleeper {
	const struct sleeper_ops *ops;
	int bell; /* ends a sleep; only the sleeper clears it, if it must */
	/*
	 * ends a sleep when readable; -1: none. Not the sleeper's to close or clear. May change
	 * between sleeps, but sleeper_uring.c always polls that of its open, by edges.
	 */
	int deadline_fd;
	void *state;            /* sleeper_uring.c's */
	unsigned interruptions; /* EINTR in a row */
};

/* 0 or a negative errno. */
int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd);

/* Always succeeds. */
void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd);

#endif
