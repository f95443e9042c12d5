/* SPDX-License-Identifier: MIT */
/*
 * A number to wait on, in place of a condition variable, whose wake-ups some C libraries lose. For
 * any thread; nothing fails, and errno stays.
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

/* Wakes nobody. */
static inline void eventcount_set(struct eventcount *eventcount, uint32_t number)
{
	u32_store_release(&eventcount->number, number); /* [eventcount] */
}

static inline void eventcount_wake(struct eventcount *eventcount, unsigned count)
{
	futex_wake(&eventcount->number, count);
}

/*
 * While it is `number`, at most `timeout_ns` (UINT64_MAX: no limit). Look again: it may return
 * early.
 */
static inline void eventcount_wait(const struct eventcount *eventcount, uint32_t number,
                                   uint64_t timeout_ns)
{
	futex_wait(&eventcount->number, number, timeout_ns);
}

#endif
