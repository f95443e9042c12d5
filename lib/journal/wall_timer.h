/* SPDX-License-Identifier: MIT */
/*
 * The two clocks, and the timer of the next task: a timerfd (wall_timer_real.c), or the tests'.
 * `set` is called under the lock.
 */
#ifndef JOURNAL_WALL_TIMER_H
#define JOURNAL_WALL_TIMER_H

#include <stdint.h>

struct wall_timer;

struct wall_timer_ops {
	uint64_t (*wall_ns)(struct wall_timer *timer); /* returns the time on CLOCK_REALTIME */
	/* Returns the time on CLOCK_MONOTONIC, for leases and timeouts. */
	uint64_t (*monotonic_ns)(struct wall_timer *timer);
	/* The fd is readable from `due_ns` on, not before; UINT64_MAX: never. */
	void (*set)(struct wall_timer *timer, uint64_t due_ns);
	int (*fd)(struct wall_timer *timer);
	/* Block until the fd is readable or the timeout ends. `wait` may also return early. */
	void (*wait)(struct wall_timer *timer, uint64_t timeout_ns);
	void (*close)(struct wall_timer *timer);
};

struct wall_timer {
	const struct wall_timer_ops *ops;
};

/* To a time of CLOCK_MONOTONIC; UINT64_MAX: never. */
static inline uint64_t wall_timer_left_ns(struct wall_timer *timer, uint64_t end_ns)
{
	uint64_t now_ns;

	if (end_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = timer->ops->monotonic_ns(timer);
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

int wall_timer_real_open(struct wall_timer **ret_timer);

#endif
