/* SPDX-License-Identifier: MIT */
/*
 * Declares a timerfd that ends a sleep at an absolute time, or when the wall clock is set. A
 * relative sleep would end at a wrong time after a suspend, or after a change of the wall clock. If
 * the owner uses CLOCK_BOOTTIME or CLOCK_REALTIME, it has a timerfd. An event loop without a hub
 * creates its timerfd when its descriptor is asked for.
 */
#ifndef TIMERHUB_DEADLINE_FD_H
#define TIMERHUB_DEADLINE_FD_H

#include "base/clock.h"

struct deadline_fd {
	const struct clock *clock;
	int fd; /* the timerfd, or -1 if there is no timerfd */
};

/* Initialize the struct without creating the timerfd. */
static inline void deadline_fd_init(struct deadline_fd *deadline_fd, const struct clock *clock)
{
	*deadline_fd = (struct deadline_fd){ .clock = clock, .fd = -1 };
}

/* Create the timerfd, for a clock of any kind. Returns 0, or a negative errno. */
int deadline_fd_create(struct deadline_fd *deadline_fd);

void deadline_fd_close(struct deadline_fd *deadline_fd);

/*
 * Set the time at which the fd becomes readable (UINT64_MAX: never), and stays so until the next
 * call; `now_ns` is a recent reading of the clock. It also becomes readable when the wall clock is
 * set. Returns 0; -ECANCELED if the clock was set since the last call: the fd is set, but the
 * caller must read the clock again; any other error if the kernel refused: then the fd keeps its
 * earlier time, and its reader must wake otherwise.
 */
int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns, uint64_t now_ns);

/*
 * Wait until the fd is readable, after deadline_fd_set() with a time that has passed: the kernel
 * makes it so when it has handled the timer interrupt. Nothing fails without this wait, so a
 * refusal is no error.
 */
void deadline_fd_settle(const struct deadline_fd *deadline_fd);

#endif
