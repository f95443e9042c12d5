/* SPDX-License-Identifier: MIT */
/*
 * A number that threads can wait for. It is used instead of a condition variable, because some
 * versions of glibc lose wake-ups of those. Any thread can make these calls; none fails, and errno
 * stays as it is.
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

/*
 * Returns the present number. If what the caller waits for has not happened yet, it gives this
 * number to eventcount_wait().
 */
static inline uint32_t eventcount_number(const struct eventcount *eventcount)
{
	/*
	 * Acquire: this thread then sees everything that was written before the number was stored.
	 * [eventcount]
	 */
	return u32_load_acquire(&eventcount->number);
}

/* Changes the number without waking the threads that wait for a change. */
static inline void eventcount_set(struct eventcount *eventcount, uint32_t number)
{
	/*
	 * Release: a thread that gets this number by eventcount_number() sees everything that this
	 * thread has written before. [eventcount]
	 */
	u32_store_release(&eventcount->number, number);
}

/* Wakes up to `count` threads that are in eventcount_wait(). */
static inline void eventcount_wake(struct eventcount *eventcount, unsigned count)
{
	futex_wake(&eventcount->number, count);
}

/* Adds 1 to the eventcount's number, and wakes up to `count` threads in eventcount_wait(). */
static inline void eventcount_advance(struct eventcount *eventcount, unsigned count)
{
	/*
	 * Release: a thread that gets the new number by eventcount_number() sees everything that
	 * this thread has written before. [eventcount]
	 */
	(void)u32_fetch_add_release(&eventcount->number, 1);
	eventcount_wake(eventcount, count);
}

/*
 * Waits until the number is not `number` any more, for at most `timeout_ns`; UINT64_MAX means no
 * limit. Can return early, so check again what you wait for.
 */
static inline void eventcount_wait(const struct eventcount *eventcount, uint32_t number,
                                   uint64_t timeout_ns)
{
	futex_wait(&eventcount->number, number, timeout_ns);
}

#endif
