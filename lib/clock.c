/* SPDX-License-Identifier: MIT */
/*
 * The hub's clock, the only home of time.h. Any thread reads it; a manual one has one mover at a
 * time. It never goes backwards.
 *
 * Labels: [time] clock_set → clock_now_ns: carries what the mover did before it moved the clock.
 */
#include "clock.h"

#include <time.h>

uint64_t clock_monotonic_ns(void)
{
	struct timespec ts;

	/* Cannot fail: the clock exists on every kernel that runs us, and the address is ours. */
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void clock_init(struct clock *clock, bool manual)
{
	clock->manual = manual;
	u64_store_relaxed(&clock->manual_ns, 0); /* not yet shared */
}

uint64_t clock_now_ns(const struct clock *clock)
{
	if (clock->manual)
		return u64_load_acquire(&clock->manual_ns); /* [time] */
	return clock_monotonic_ns();
}

bool clock_set(struct clock *clock, uint64_t now_ns)
{
	/* Relaxed: we are its only writer. */
	if (now_ns < u64_load_relaxed(&clock->manual_ns))
		return false;
	u64_store_release(&clock->manual_ns, now_ns); /* [time] */
	return true;
}
