/* SPDX-License-Identifier: MIT */
/*
 * Rounds the times at which timeouts are scheduled to a grid. A scheduled time is the deadline,
 * rounded down to a multiple of a power of two that is at most an eighth of the remaining time. So
 * timeouts of one length have at most 16 scheduled times within that length. The Linux kernel's
 * timer wheel has the same grid (kernel/time/timer.c). The functions are pure.
 * tests/unit/test_round_to_grid.c tries every power of two.
 */
#ifndef TIMERHUB_ROUND_TO_GRID_H
#define TIMERHUB_ROUND_TO_GRID_H

#include <stdbool.h>

#include "base/bits.h"

/*
 * A deadline that is nearer to its grid time is scheduled exactly: its grid time would be in the
 * same bucket of the wheel.
 */
#define GRID_NEAR_NS ((uint64_t)1 << 16)

/* Returns the shift of the coarsest grid with eight steps in `rest_ns`; 0: every nanosecond. */
static inline unsigned grid_for(uint64_t rest_ns)
{
	return rest_ns < 8 ? 0 : bits_highest(rest_ns) - 3;
}

static inline bool grid_holds(unsigned shift, uint64_t at_ns)
{
	return (at_ns >> shift) << shift == at_ns;
}

/*
 * Returns the shift with which to schedule a timeout again, when its entry on the grid `before` has
 * come up `rest_ns` before the deadline. If the rest is short because the timeout was moved some
 * time ago, the timeout has the same length as before and keeps the grid. If the entry was exact,
 * the timeout was moved since. If the timeout was moved and a step of the grid is more than a
 * quarter of the rest, the grid was chosen for another length.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/*
 * Returns the time at which to schedule a deadline: its grid time. If the grid time has passed or
 * is too near to the deadline, returns the deadline.
 */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
