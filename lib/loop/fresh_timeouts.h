/* SPDX-License-Identifier: MIT */
/*
 * Two collections of timeouts that the loop has to work on before it blocks. README.md has a
 * picture.
 *
 * - The array `fresh` has the timeouts that were set by a delay since the loop last read its clock.
 *   Their delay was added to the time of that reading, because reading the clock for each set would
 *   take longer than everything else. So their deadlines are too early until the next reading,
 *   which corrects them.
 *
 * - The list has the timeouts that may be scheduled too late, or not at all. They are all scheduled
 *   at once. So a timeout that is set and stopped between two turns is never scheduled.
 */
#ifndef TIMERHUB_FRESH_TIMEOUTS_H
#define TIMERHUB_FRESH_TIMEOUTS_H

#include "loop/loop.h"

/*
 * Corrects the deadlines of the timeouts in the array `fresh` by the time from `base_ns` to
 * `now_ns`, and empties the array. Timeouts that are scheduled too late go into the list.
 */
void fresh_move(struct timerhub_loop *loop, uint64_t base_ns, uint64_t now_ns);

/*
 * Tells the loop that its clock shows `now_ns`, to which delays are added from now on. This also
 * corrects the deadlines of the timeouts in the array `fresh`.
 */
static inline void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns)
{
	uint64_t base_ns = loop->front.base_ns;

	loop->front.base_ns = now_ns;
	loop->front.delay_max_ns = UINT64_MAX - 1 - now_ns;
	if (loop->front.fresh_count != loop->idle_count)
		fresh_move(loop, base_ns, now_ns);
}

/*
 * Puts a timeout into the list of those that the loop has to schedule, unless it is there already.
 */
static inline void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timeout->is_listed)
		return;
	timeout->is_listed = 1;
	loop->quiet_ns = 0;
	loop->filings[loop->listed_count++].place = timeout->place;
}

/*
 * Takes a timeout out of the array `fresh`, if it is there, so that its deadline is not corrected
 * any more.
 */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Schedules the timeouts of the list that still need it, and empties the list. */
void fresh_file(struct timerhub_loop *loop);

#endif
