/* SPDX-License-Identifier: MIT */
/*
 * Two collections of timeouts that the loop has to deal with before it blocks; README.md has the
 * picture.
 *
 * - `fresh` is an array of the timeouts that were set by a delay since the loop last read its
 *   clock. Their deadlines count from that reading, because to read the clock at each set would
 *   take longer than all the rest. So they are too early until the next reading moves them on.
 *
 * - The list has the timeouts whose schedule entry may be too late, or which have none. They are
 *   scheduled all at once, so a timeout that is set and stopped between two turns never is.
 */
#ifndef TIMERHUB_FRESH_TIMEOUTS_H
#define TIMERHUB_FRESH_TIMEOUTS_H

#include "loop/loop.h"

/*
 * Adds the time from `base_ns` to `now_ns` to the deadlines of all timeouts in `fresh`, and empties
 * the array. Those whose schedule entry is now too late go into the list; during a turn all do,
 * because a timeout that a callback sets must not expire in the same turn.
 */
void fresh_move(struct timerhub_loop *loop, uint64_t base_ns, uint64_t now_ns);

/*
 * Takes over a reading of the clock: from now on delays count from `now_ns`, and the deadlines of
 * fresh timeouts are moved on by the time since the last reading.
 */
static inline void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns)
{
	uint64_t base_ns = loop->front.base_ns;

	loop->front.base_ns = now_ns;
	loop->front.delay_max_ns = UINT64_MAX - 1 - now_ns;
	if (loop->front.fresh_count != loop->idle_count)
		fresh_move(loop, base_ns, now_ns);
}

/* Puts a timeout into the list of those that the loop has yet to schedule, if it is not there. */
static inline void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timeout->is_listed)
		return;
	timeout->is_listed = 1;
	loop->quiet_ns = 0;
	loop->filings[loop->listed_count++].place = timeout->place;
}

/* Takes a timeout out of `fresh`, because it is removed or has an exact deadline now. */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Schedules all timeouts in the list whose entry is too late or missing, and empties the list. */
void fresh_file(struct timerhub_loop *loop);

#endif
