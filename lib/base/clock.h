/* SPDX-License-Identifier: MIT */
/*
 * The clock of a hub or a loop, which is one of the kernel's, or a manual one that the program
 * moves. Any thread can read it. Only manual_ns changes after it was opened.
 */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include <time.h>

#include "base/atomic.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

struct clock {
	bool manual;          /* whether only clock_set() moves it */
	bool goes_back;       /* whether it is the wall clock, the only one that can go back */
	int id;               /* the kernel's clockid_t */
	atomic_u64 manual_ns; /* a manual clock's time, written by the thread that moves it */
};

/* Reads a clock of the kernel, which must have it. */
uint64_t clock_read_ns(clockid_t id);

static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* Reads CLOCK_BOOTTIME, on which a timeout that ends during a suspend expires at once after it. */
static inline uint64_t clock_boottime_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* Returns a number of nanoseconds as the kernel takes it. */
static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		                  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Begins a clock. `kind`, an enum timerhub_clock, counts only if it is not manual. */
void clock_init(struct clock *clock, uint32_t kind, bool manual);

/* Reads the clock. */
uint64_t clock_now_ns(const struct clock *clock);

/*
 * Tells whether a relative sleep could miss a time, because the clock is set, or runs in a suspend.
 */
bool clock_needs_deadline_fd(const struct clock *clock);

/*
 * Moves a manual clock, by one thread at a time. Returns false, and does nothing, if it would go
 * back.
 */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
