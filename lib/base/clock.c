/* SPDX-License-Identifier: MIT */
/*
 * Reads the kernel's clocks, and keeps the time of a manual one.
 *
 * The manual clock's time is stored and loaded relaxed, because nobody relies on it to see other
 * memory. A consumer never sees a time before a timer's expiry, because the load of the expired
 * timer's pair has made that time visible to it.
 */
#include "base/clock.h"

#include <timerhub.h>

uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	/* This can't fail, because every kernel that we support has these clocks. */
	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

void clock_init(struct clock *clock, uint32_t kind, bool manual)
{
	static const clockid_t ids[] = {
		[TIMERHUB_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[TIMERHUB_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
		[TIMERHUB_CLOCK_REALTIME] = CLOCK_REALTIME,
	};

	clock->manual = manual;
	clock->goes_back = !manual && kind == TIMERHUB_CLOCK_REALTIME;
	clock->id = ids[kind];
	u64_store_relaxed(&clock->manual_ns, 0); /* relaxed: no other thread has the clock */
}

uint64_t clock_now_ns(const struct clock *clock)
{
	if (clock->manual)
		return u64_load_relaxed(&clock->manual_ns);
	return clock_read_ns(clock->id);
}

bool clock_needs_deadline_fd(const struct clock *clock)
{
	return !clock->manual && clock->id != CLOCK_MONOTONIC;
}

bool clock_set(struct clock *clock, uint64_t now_ns)
{
	/* Relaxed is enough: only one thread at a time may move the clock. */
	if (now_ns < u64_load_relaxed(&clock->manual_ns))
		return false;
	u64_store_relaxed(&clock->manual_ns, now_ns);
	return true;
}
