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
 * A grid is named by its shift: the steps of the grid are 2^shift ns apart. To round a time down to
 * the grid, clear the low `shift` bits of the time.
 *
 * grid_next() is for a timeout that is scheduled again. It usually keeps `before`, the number of
 * bits that was chosen the previous time. README.md ("The grid") explains the two exceptions. One
 * of them applies only if the previous schedule entry was not rounded (`was_exact`).
 *
 * grid_instant_ns() returns the deadline itself in two cases. Either the rounded time has passed
 * already, or rounding would make too small a difference (GRID_NEAR_NS).
 */
#ifndef TIMERHUB_ROUND_DOWN_TO_GRID_H
#define TIMERHUB_ROUND_DOWN_TO_GRID_H

#include <stdbool.h>

#include "base/bits.h"
#include "schedule/wheel.h"

/*
 * If rounding makes the time of an entry earlier by less than this, it is not done, because the
 * wheel puts both times into the same bucket anyway.
 */
#define GRID_NEAR_NS ((uint64_t)1 << WHEEL_FINEST_SHIFT)

/*
 * Returns how many low bits to clear in a deadline that is `rest_ns` away. This makes the deadline
 * earlier by at most rest_ns / 8.
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
 * Returns how many low bits of the deadline to clear for a new schedule entry. It replaces one that
 * came up too early, or one at an exact deadline that the timeout no longer has.
 */
static inline unsigned grid_next(unsigned before, bool was_exact, uint64_t rest_ns)
{
	unsigned shift = grid_for(rest_ns);

	return shift > before || (was_exact && shift + 1 < before) ? shift : before;
}

/* Returns the time at which to schedule a timeout: its deadline, usually rounded down. */
static inline uint64_t grid_instant_ns(unsigned shift, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t at_ns = (deadline_ns >> shift) << shift;

	return at_ns <= now_ns || deadline_ns - at_ns < GRID_NEAR_NS ? deadline_ns : at_ns;
}

#endif
