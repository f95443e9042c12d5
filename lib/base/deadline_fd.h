/* SPDX-License-Identifier: MIT */
/*
 * A timerfd that ends a sleep at a time on its clock, or when the wall clock is set, where the
 * timeout of a sleep would be wrong: for an owner on CLOCK_BOOTTIME or CLOCK_REALTIME, and for a
 * loop without a hub, once its descriptor is asked for.
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

/* Closes the timerfd, if there is one. */
void deadline_fd_close(struct deadline_fd *deadline_fd);

/*
 * Makes the fd unreadable for ever, if there is one. It is called right before the close, because
 * the fd would go on waking an epoll in which it is, if a child of this process has it too. A child
 * must not call it, since that would take the parent's wake-up.
 */
void deadline_fd_disarm(const struct deadline_fd *deadline_fd);

/*
 * Sets when the timerfd becomes readable; UINT64_MAX means never. On the wall clock it also becomes
 * readable when that is set. Returns 0, or -ECANCELED if it is set but the wall clock was set since
 * the last call, so that the caller must read the clock again. After any other error the earlier
 * time stays, and the caller must find another way to wake.
 */
int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns);

/*
 * Waits, after a time that has passed was set, until the kernel has made the timerfd readable.
 * Nothing fails without it; it saves a poller from finding nothing and blocking once more.
 */
void deadline_fd_settle(const struct deadline_fd *deadline_fd);

#endif
