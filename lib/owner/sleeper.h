/* SPDX-License-Identifier: MIT */
/*
 * Lets the owner sleep until a timeout ends, its eventfd (the bell) is signalled, or its timerfd
 * expires. There are two sleepers. sleeper_uring.c works where the kernel allows io_uring,
 * sleeper_poll.c works everywhere.
 */
#ifndef TIMERHUB_SLEEPER_H
#define TIMERHUB_SLEEPER_H

#include <stdint.h>

/*
 * If this many sleeps in a row end with EINTR, the sleeper treats EINTR as an error. A kernel or a
 * seccomp filter may return EINTR every time. Without the limit, such an owner would keep a CPU
 * busy and never sleep.
 */
#define SLEEPER_INTERRUPTIONS_MAX 16

struct sleeper;

struct sleeper_ops {
	/* Start the sleeper, in the owner's thread. Returns 0 or a negative errno. */
	int (*start)(struct sleeper *sleeper);
	/*
	 * Sleep until the bell is signalled, at most for `timeout_ns` (UINT64_MAX: no limit). If
	 * the bell was signalled already, return at once. The call may return early, and the owner
	 * reads the clock after each sleep. Returns 0, or a negative errno if the owner could not
	 * sleep.
	 */
	int (*sleep)(struct sleeper *sleeper, uint64_t timeout_ns);
	/* Close the sleeper, in the owner's thread, or elsewhere while the owner does not run. */
	void (*close)(struct sleeper *sleeper);
};

struct sleeper {
	const struct sleeper_ops *ops;
	int bell; /* the hub's eventfd that ends a sleep */
	/*
	 * The timerfd that ends a sleep when it becomes readable; -1: none. The sleeper neither
	 * closes nor clears the timerfd. The owner may change this member between sleeps.
	 * sleeper_uring.c ignores such a change. It polls the timerfd of sleeper_open_uring(),
	 * edge-triggered.
	 */
	int deadline_fd;
	void *state;            /* data of sleeper_uring.c */
	unsigned interruptions; /* number of sleeps in a row that ended with EINTR */
};

/* Open the io_uring sleeper. Returns 0, or a negative errno. */
int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd);

/* Open the ppoll sleeper, which always succeeds. */
void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd);

#endif
