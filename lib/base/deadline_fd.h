/* SPDX-License-Identifier: MIT */
/*
 * A timerfd that ends a sleep at a time on a given clock, and also when the wall clock is set. It
 * is used by an owner on CLOCK_BOOTTIME or CLOCK_REALTIME, and by a loop without a hub, once its
 * descriptor is asked for. For the owner a relative timeout would not do: it does not count the
 * time of a suspend, and does not notice that somebody sets the wall clock.
 *
 * If deadline_fd_set() returns -ECANCELED, the caller must read the clock again, because a timer
 * may be due now. After another error, the caller must end its sleep in another way, for example by
 * a timeout.
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
 * Returns whether a timerfd that is set to `set_ns` expires in time for a sleep until `until_ns`.
 * It may expire too early, because that costs less than to set it again each time.
 */
static inline bool deadline_fd_ends_by(uint64_t set_ns, uint64_t until_ns, uint64_t now_ns)
{
	return set_ns > now_ns && set_ns <= until_ns;
}

/* Closes the timerfd, if there is one. */
void deadline_fd_close(struct deadline_fd *deadline_fd);

/*
 * Makes the timerfd unreadable for ever, right before it is closed. Otherwise the timerfd could
 * wake an epoll instance again and again, as long as a forked child has it open. A child must not
 * call this.
 */
void deadline_fd_disarm(const struct deadline_fd *deadline_fd);

/*
 * Sets the timerfd to become readable at `at_ns`; UINT64_MAX: never. Returns 0 or an error:
 * - -ECANCELED: the timerfd is set, but the wall clock was changed since the last call.
 * - Any other error: the timerfd still has its earlier time.
 */
int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns);

/*
 * Waits until the timerfd is readable, at most 1 ms. Call it after setting a time in the past: the
 * kernel makes the timerfd readable only a moment later, and a thread that polls it before that
 * could block once more.
 */
void deadline_fd_settle(const struct deadline_fd *deadline_fd);

#endif
