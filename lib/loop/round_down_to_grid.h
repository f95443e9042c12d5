/* SPDX-License-Identifier: MIT */
/*
 * Chooses when the loop first looks at the deadline of a timeout.
 *
 * Most timeouts are moved before they expire, so the first look usually finds that there is more
 * time. One wake-up should be enough for such looks at many timeouts. So the deadline is rounded
 * down to a grid: the multiples of a power of two that is at most an eighth of the remaining time.
 * The timer wheel of the Linux kernel groups its timers in the same way (kernel/time/timer.c). For
 * timeouts of length L there are at most 16 such times in a time of length L.
 *
 * A grid is named by its shift: the steps of the grid are 2^shift ns apart.
 */
#ifndef TIMERHUB_ROUND_DOWN_TO_GRID_H
#define TIMERHUB_ROUND_DOWN_TO_GRID_H

#include <stdbool.h>

#include "base/bits.h"
#include "schedule/wheel.h"

/*
 * If rounding would make the time of the entry earlier by less than this, the timeout is scheduled
 * exactly at its deadline. Rounding would gain nothing, because the wheel puts both times into the
 * same bucket.
 */
#define GRID_NEAR_NS ((uint64_t)1 << WHEEL_FINEST_SHIFT)

/*
 * Returns the largest n for which 2^n is at most rest_ns / 8, or 0. A timeout that is due in
 * `rest_ns` is first checked at its deadline rounded down to a multiple of 2^n ns, so that one
 * wake-up serves many.
 */
static inline unsigned grid_for(uint64_t rest_ns)
{
	return rest_ns < 8 ? 0 : bits_highest(rest_ns) - 3;
}

/* Returns true if `at_ns` is on the grid, which means that it is a multiple of 2^shift ns. */
static inline bool grid_holds(unsigned shift, uint64_t at_ns)
{
	return (at_ns >> shift) << shift == at_ns;
}

/*
 * Returns the grid for a timeout that has to be scheduled again and was on the grid `before` so
 * far.
 *
 * When the loop looks at a timeout that was moved, only a part of its new length is left. The
 * length itself is usually the same as before, so the timeout keeps its grid. If more time is left
 * than that grid is made for, it gets a coarser one. If its last schedule entry was exactly at a
 * deadline, and a step of the old grid is more than a quarter of the time that is left, the timeout
 * has probably become shorter, and gets a finer grid.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/*
 * Returns when the loop should next look at a timeout's deadline: at the deadline, rounded down to
 * a multiple of 2^shift ns. If that time has passed, or is less than GRID_NEAR_NS before the
 * deadline, it returns the deadline itself.
 */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
