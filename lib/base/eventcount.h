/* SPDX-License-Identifier: MIT */
/*
 * A number that threads wait on, in place of a condition variable, whose wake-ups some C libraries
 * lose. Any thread may make every call. The calls cannot fail and leave errno alone.
 *
 * Labels: [eventcount] eventcount_set → eventcount_number: carries all writes before the set.
 */
#ifndef TIMERHUB_EVENTCOUNT_H
#define TIMERHUB_EVENTCOUNT_H

#include "base/futex.h"

struct eventcount {
	atomic_u32 number;
};

static inline uint32_t eventcount_number(const struct eventcount *eventcount)
{
	return u32_load_acquire(&eventcount->number); /* [eventcount] */
}

/* Set the number, and wake no thread. */
static inline void eventcount_set(struct eventcount *eventcount, uint32_t number)
{
	u32_store_release(&eventcount->number, number); /* [eventcount] */
}

/* Wake at most `count` waiting threads. */
static inline void eventcount_wake(struct eventcount *eventcount, unsigned count)
{
	futex_wake(&eventcount->number, count);
}

/*
 * Block while the number is `number`, for at most `timeout_ns` (UINT64_MAX: no limit). The call may
 * return early, so the caller must check the number again.
 */
static inline void eventcount_wait(const struct eventcount *eventcount, uint32_t number,
                                   uint64_t timeout_ns)
{
	futex_wait(&eventcount->number, number, timeout_ns);
}

#endif
