/* SPDX-License-Identifier: MIT */
/*
 * A timerfd that ends a sleep at a time on a given clock, and also when the wall clock is set. It
 * is used where the timeout of a sleep would be wrong: by an owner on CLOCK_BOOTTIME or
 * CLOCK_REALTIME, and by a loop without a hub, once its descriptor is asked for.
 */
#ifndef TIMERHUB_DEADLINE_FD_H
#define TIMERHUB_DEADLINE_FD_H

#include "base/clock.h"

struct deadline_fd {
	const struct clock *clock;
	int fd; /* the timerfd; -1: not created */
};

static inline void deadline_fd_init(struct deadline_fd *deadline_fd, const struct clock *clock)
{
	*deadline_fd = (struct deadline_fd){ .clock = clock, .fd = -1 };
}

/* Creates the timerfd. Returns 0 or a negative errno. */
int deadline_fd_create(struct deadline_fd *deadline_fd);

/* Tells whether a timerfd that is set to `set_ns` need not be set anew. It may expire too early. */
static inline bool deadline_fd_ends_by(uint64_t set_ns, uint64_t until_ns, uint64_t now_ns)
{
	return set_ns > now_ns && set_ns <= until_ns;
}

/* Closes the timerfd, if there is one. */
void deadline_fd_close(struct deadline_fd *deadline_fd);

/*
 * Makes the timerfd unreadable before it is closed, because a forked child may have it open. A
 * child must not call this.
 */
void deadline_fd_disarm(const struct deadline_fd *deadline_fd);

/*
 * Makes the timerfd readable at `at_ns` (UINT64_MAX: never). Returns 0 or a negative errno.
 * - -ECANCELED: it is set, but read the clock again, because somebody has changed that.
 * - Others: the earlier time stays, so wake up in another way.
 */
int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns);

/* After a time in the past was set, waits until the timerfd is readable. */
void deadline_fd_settle(const struct deadline_fd *deadline_fd);

#endif
