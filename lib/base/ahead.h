/* SPDX-License-Identifier: MIT */
/*
 * The ranges of time by which an observable hub or loop counts what is due soon, so that
 * timerhub-top can show how much work lies ahead.
 */
#ifndef TIMERHUB_AHEAD_H
#define TIMERHUB_AHEAD_H

#include <stdint.h>

#define AHEAD_RANGES 9
/* The counts are taken anew after this time at the earliest. */
#define AHEAD_EVERY_NS UINT64_C(1000000000)

/*
 * Timers are counted by how soon they are due: within 1 ms (range 0), in 1 to 10 ms (range 1), and
 * so on. Returns where a range ends.
 */
static inline uint64_t ahead_within_ns(unsigned range)
{
	static const uint64_t ends_ns[AHEAD_RANGES] = {
		UINT64_C(1000000),       /* 1 ms */
		UINT64_C(10000000),      /* 10 ms */
		UINT64_C(100000000),     /* 100 ms */
		UINT64_C(1000000000),    /* 1 s */
		UINT64_C(10000000000),   /* 10 s */
		UINT64_C(60000000000),   /* 1 min */
		UINT64_C(600000000000),  /* 10 min */
		UINT64_C(3600000000000), /* 1 h */
		UINT64_MAX,
	};

	return ends_ns[range];
}

/*
 * Returns the index of the range that `at_ns`, the time of a timer, falls into. A timer that is
 * overdue falls into range 0.
 */
static inline unsigned ahead_range(uint64_t now_ns, uint64_t at_ns)
{
	uint64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;
	unsigned range = 0;

	while (left_ns > ahead_within_ns(range))
		range++;
	return range;
}

#endif
