/* SPDX-License-Identifier: MIT */
/*
 * The clock of a hub or a loop: one of the kernel's, or a manual one that the program moves. Any
 * thread can read it. Once it is open, only `manual_ns` changes.
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

/* Returns the time of a clock of the kernel. The kernel must have that clock. */
uint64_t clock_read_ns(clockid_t id);

static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/*
 * Returns the time of CLOCK_BOOTTIME. That clock goes on while the machine is suspended, so a
 * timeout that ends during the suspend expires as soon as the machine resumes.
 */
static inline uint64_t clock_boottime_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* Converts nanoseconds to a struct timespec, for a system call. */
static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		                  .tv_nsec = (long)(ns % NS_PER_S) };
}

/*
 * Sets up a clock. If it is not manual, `kind` is an enum timerhub_clock and says which clock of
 * the kernel it is.
 */
void clock_init(struct clock *clock, uint32_t kind, bool manual);

/* Returns the time of a hub's or a loop's clock, in nanoseconds. */
uint64_t clock_now_ns(const struct clock *clock);

/*
 * Returns true for CLOCK_BOOTTIME and the wall clock. A thread that sleeps until a time on one of
 * these needs a timerfd.
 */
bool clock_needs_deadline_fd(const struct clock *clock);

/*
 * Moves a manual clock to `now_ns`. Returns false and does nothing if that would move it back. Only
 * one thread at a time may call it.
 */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
