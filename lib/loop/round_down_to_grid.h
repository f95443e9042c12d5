/* SPDX-License-Identifier: MIT */
/*
 * Rounds a deadline down to a multiple of a power of two, at most an eighth of the remaining time,
 * as the Linux kernel's timer wheel does (kernel/time/timer.c). In a time of length L, timeouts of
 * length L have at most 16 such times. Tested by tests/unit/test_round_down_to_grid.c.
 */
#ifndef TIMERHUB_ROUND_DOWN_TO_GRID_H
#define TIMERHUB_ROUND_DOWN_TO_GRID_H

#include <stdbool.h>

#include "base/bits.h"

/* A deadline so little after its grid time is scheduled exactly: both share a wheel's bucket. */
#define GRID_NEAR_NS ((uint64_t)1 << 16)

/* Returns the largest shift s at which eight steps of 2^s ns fit into `rest_ns`. */
static inline unsigned grid_for(uint64_t rest_ns)
{
	return rest_ns < 8 ? 0 : bits_highest(rest_ns) - 3;
}

static inline bool grid_holds(unsigned shift, uint64_t at_ns)
{
	return (at_ns >> shift) << shift == at_ns;
}

/*
 * Returns the shift of the grid on which a timeout is scheduled again, `before` being its last.
 * When a timeout was moved, little time remains, but its length is unchanged: it keeps its grid, or
 * gets a coarser one. If the entry was exact and a step of the last grid is more than a quarter of
 * the rest, the timeout is probably shorter now, and gets a finer grid.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/* Returns the deadline, rounded down unless that has passed or is too near to the deadline. */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
