/* SPDX-License-Identifier: MIT */
/*
 * Rounds the times at which timeouts are scheduled to a grid. A scheduled time is the deadline,
 * rounded down to a multiple of a power of two that is at most an eighth of the remaining time.
 * Timeouts of one length therefore have at most 16 scheduled times within that length. The Linux
 * kernel's timer wheel has the same grid (kernel/time/timer.c). The functions have no state.
 * tests/unit/test_round_down_to_grid.c tests every power of two.
 */
#ifndef TIMERHUB_ROUND_DOWN_TO_GRID_H
#define TIMERHUB_ROUND_DOWN_TO_GRID_H

#include <stdbool.h>

#include "base/bits.h"

/*
 * If a deadline is less than GRID_NEAR_NS after its grid time, the timeout is scheduled exactly at
 * the deadline, because both times would be in the same bucket of the wheel.
 */
#define GRID_NEAR_NS ((uint64_t)1 << 16)

/*
 * Returns the shift of the coarsest grid of which eight steps fit into `rest_ns`. A grid of shift s
 * has steps of 2^s ns.
 */
static inline unsigned grid_for(uint64_t rest_ns)
{
	return rest_ns < 8 ? 0 : bits_highest(rest_ns) - 3;
}

static inline bool grid_holds(unsigned shift, uint64_t at_ns)
{
	return (at_ns >> shift) << shift == at_ns;
}

/*
 * Returns the grid, as a shift, on which to schedule a timeout again. The argument `before` is the
 * grid on which the timeout was scheduled. The timeout's entry has come up, and `rest_ns` is the
 * time left until the deadline. Usually the remaining time is short because the timeout was moved
 * some time ago. A timeout that was moved has the same length as before, and keeps the grid. If the
 * remaining time permits a coarser grid, grid_next() returns the coarser grid. If the entry was
 * exact and a step of the grid is more than a quarter of the remaining time, the grid was chosen
 * for a longer timeout. For a shorter timeout grid_next() returns a finer grid.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/*
 * Returns the time at which to schedule a timeout with this deadline, which is the deadline rounded
 * down to the grid. If the rounded time has passed or is too near to the deadline, returns the
 * deadline.
 */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
