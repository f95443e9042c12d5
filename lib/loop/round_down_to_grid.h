/* SPDX-License-Identifier: MIT */
/*
 * Rounds the times at which timeouts are scheduled to a grid. A scheduled time is the deadline,
 * rounded down to a multiple of the grid's step. The step is a power of two, and is at most an
 * eighth of the remaining time. In a time of length L, timeouts of length L therefore have at most
 * 16 scheduled times. The Linux kernel's timer wheel has the same grid (kernel/time/timer.c). The
 * functions have no state. tests/unit/test_round_down_to_grid.c tests every power of two.
 */
#ifndef TIMERHUB_ROUND_DOWN_TO_GRID_H
#define TIMERHUB_ROUND_DOWN_TO_GRID_H

#include <stdbool.h>

#include "base/bits.h"

/*
 * If a deadline is less than GRID_NEAR_NS after its grid time, the timeout is scheduled exactly at
 * the deadline. Both times are in one bucket of the wheel.
 */
#define GRID_NEAR_NS ((uint64_t)1 << 16)

/*
 * Returns the largest shift at which eight steps of the grid fit into `rest_ns`. A grid of shift s
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
 * Returns the shift of the grid on which a timeout is scheduled again. The argument `before` is the
 * shift of the timeout's last grid. The argument `rest_ns` is the time left until the deadline. If
 * the program has moved the timeout, the remaining time is usually short, but the timeout's length
 * is unchanged. The timeout then keeps its grid. If the remaining time permits a coarser grid,
 * grid_next() returns the coarser grid. If the entry was exact and a step of the last grid is more
 * than a quarter of the remaining time, grid_next() returns a finer grid. In this case the timeout
 * is now probably shorter than before.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/*
 * Returns the deadline rounded down to the grid. If the rounded time has passed or is too near to
 * the deadline, returns the deadline.
 */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
