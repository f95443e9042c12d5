/* SPDX-License-Identifier: MIT */
/*
 * The grid on which timeouts are filed: the instant of a filing is the deadline rounded down to a
 * power of two, at most an eighth of the time that remains. So timeouts of one length share at most
 * 16 instants in that length. The Linux kernel's timer wheel has the same grid
 * (kernel/time/timer.c). Pure. tests/unit/test_grid.c tries every power of two.
 */
#ifndef TIMERHUB_GRID_H
#define TIMERHUB_GRID_H

#include <stdbool.h>

#include "base/bits.h"

/*
 * A deadline this near to its instant on the grid is filed exactly: rounding it down would put it
 * into the bucket of the wheel that it is in anyway.
 */
#define GRID_NEAR_NS ((uint64_t)1 << 16)

/* Returns the shift of the coarsest grid of which eight steps fit into the rest; 0: every ns. */
static inline unsigned grid_for(uint64_t rest_ns)
{
	return rest_ns < 8 ? 0 : bits_highest(rest_ns) - 3;
}

static inline bool grid_holds(unsigned shift, uint64_t at_ns)
{
	return (at_ns >> shift) << shift == at_ns;
}

/*
 * Returns the shift to file a timeout on, whose filing on the grid of `before` has come up
 * `rest_ns` before its deadline. A rest that is short because the timeout was moved some time ago
 * keeps the grid: the length of the timeout is the same. If the filing was exact, the timeout has
 * been moved since, and a grid of more than a quarter of the rest is of another length.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/* Returns the instant to file a deadline under; if none on the grid is left, the deadline. */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
