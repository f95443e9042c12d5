/* SPDX-License-Identifier: MIT */
/*
 * A number that threads can wait for, in place of a condition variable, of which some versions of
 * glibc lose wake-ups. Any thread can make these calls; none fails, and errno stays as it is.
 *
 * Labels: [eventcount] eventcount_set, eventcount_advance → eventcount_number: carries all writes
 * before the change.
 */
#ifndef TIMERHUB_EVENTCOUNT_H
#define TIMERHUB_EVENTCOUNT_H

#include "base/futex.h"

struct eventcount {
	atomic_u32 number;
};

/* Returns the number, to be given to eventcount_wait(). */
static inline uint32_t eventcount_number(const struct eventcount *eventcount)
{
	/* [eventcount]: with this number, all that was written before it was set is seen. */
	return u32_load_acquire(&eventcount->number);
}

/* Changes the number, and wakes nobody. */
static inline void eventcount_set(struct eventcount *eventcount, uint32_t number)
{
	/* [eventcount]: whoever sees this number sees all that was written before. */
	u32_store_release(&eventcount->number, number);
}

/* Wakes up to `count` threads that wait. */
static inline void eventcount_wake(struct eventcount *eventcount, unsigned count)
{
	futex_wake(&eventcount->number, count);
}

/* Raises the number by one, and wakes up to `count` threads that wait. */
static inline void eventcount_advance(struct eventcount *eventcount, unsigned count)
{
	/* [eventcount]: whoever sees this number sees all that was written before. */
	(void)u32_fetch_add_release(&eventcount->number, 1);
	eventcount_wake(eventcount, count);
}

/*
 * Waits while it is still `number`, for at most `timeout_ns`; UINT64_MAX means without limit. It
 * can return early, so the caller looks again.
 */
static inline void eventcount_wait(const struct eventcount *eventcount, uint32_t number,
                                   uint64_t timeout_ns)
{
	futex_wait(&eventcount->number, number, timeout_ns);
}

#endif
