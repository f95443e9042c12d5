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

/*
 * Returns whether a timerfd that is set to `set_ns` expires in time for a sleep until `until_ns`,
 * so that it need not be set again. The timerfd may expire too early, because one needless wake-up
 * costs less than a system call each time the deadline moves.
 */
static inline bool deadline_fd_ends_by(uint64_t set_ns, uint64_t until_ns, uint64_t now_ns)
{
	return set_ns > now_ns && set_ns <= until_ns;
}

/* Closes the timerfd, if there is one. */
void deadline_fd_close(struct deadline_fd *deadline_fd);

/*
 * Makes the timerfd unreadable for ever, if there is one. Call it right before you close the
 * timerfd. If a forked child still has the timerfd open, an epoll instance that watches the timerfd
 * does not forget it, and would wake up again and again. A child must not call this function,
 * because the timerfd is its parent's.
 */
void deadline_fd_disarm(const struct deadline_fd *deadline_fd);

/*
 * Sets when the timerfd becomes readable; UINT64_MAX means never. On the wall clock it also becomes
 * readable when that clock is set.
 *
 * Returns 0. Returns -ECANCELED if the wall clock was set since the last call; the time is set all
 * the same, but the caller must read the clock again. After any other error the earlier time stays,
 * and the caller must wake up in another way.
 */
int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns);

/*
 * Waits until the kernel has made the timerfd readable. Call it after you have set a time that has
 * already passed. Without the wait nothing fails, but a thread that polls the timerfd right now
 * could find it unreadable and block once more.
 */
void deadline_fd_settle(const struct deadline_fd *deadline_fd);

#endif
