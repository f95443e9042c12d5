/* SPDX-License-Identifier: MIT */
/*
 * What ends a sleep on the clocks that a relative sleep does not follow: a timerfd, which goes off
 * at an instant of its clock, suspended or not, and when the wall clock is set. The owner's; an
 * event loop without a hub has one too, if its descriptor is asked for.
 */
#ifndef TIMERHUB_DEADLINE_FD_H
#define TIMERHUB_DEADLINE_FD_H

#include "base/clock.h"

struct deadline_fd {
	const struct clock *clock;
	int fd; /* to be polled together with the bell; -1: the clock needs none */
};

/* A timerfd without a timerfd. */
static inline void deadline_fd_init(struct deadline_fd *deadline_fd, const struct clock *clock)
{
	*deadline_fd = (struct deadline_fd){ .clock = clock, .fd = -1 };
}

/* Create its timerfd, whatever the clock is. 0, or a negative errno. */
int deadline_fd_create(struct deadline_fd *deadline_fd);

/* Both, the second if the clock needs it. 0, or a negative errno. */
int deadline_fd_open(struct deadline_fd *deadline_fd, const struct clock *clock);
void deadline_fd_close(struct deadline_fd *deadline_fd);

/*
 * Make the fd readable from this instant on (UINT64_MAX: not at all), and as soon as the clock is
 * set; until the next call. 0; or -ECANCELED: the clock was set since the last call, look at it
 * again; or another negative errno of the kernel's.
 */
int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns);

/*
 * Return when the fd is readable, which it is as soon as the kernel has handled its timer
 * interrupt. To be called after deadline_fd_set() to an instant that has passed.
 */
void deadline_fd_settle(const struct deadline_fd *deadline_fd);

#endif
