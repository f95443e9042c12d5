/* SPDX-License-Identifier: MIT */
/* Reads clocks in ns: CLOCK_MONOTONIC and the CPU time of this process. */
#ifndef BENCH_CLOCKS_H
#define BENCH_CLOCKS_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND 1000000000ull
#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t process_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline struct timespec timespec_from_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_SECOND),
		                  .tv_nsec = (long)(ns % NS_PER_SECOND) };
}

static inline void sleep_until_ns(uint64_t deadline_ns)
{
	struct timespec time = timespec_from_ns(deadline_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
	}
}

#endif
