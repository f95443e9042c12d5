/* SPDX-License-Identifier: MIT */
/*
 * Schedules timeouts, and checks the timeouts whose schedule entry has come up. A schedule entry
 * says when to check a place. When a turn has ended, a schedule entry is never later than the
 * deadline of its place's timeout.
 */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "loop/loop.h"

/*
 * Schedule a timeout that is set, and remove its earlier schedule entry. The new entry is on the
 * grid of `shift`. If the deadline is too near for this grid, the new entry is exactly at the
 * deadline.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/* The rest of loop_rest(). */
void loop_correct_first(struct timerhub_loop *loop);

/*
 * Check whether the timeout of a place is due. The place's entry at `at_ns` was taken out of the
 * schedule. If the timeout is due now, and no other timeout has an earlier deadline, returns the
 * timeout. Otherwise loop_recheck() returns NULL. If the timeout is set but may not expire yet,
 * loop_recheck() schedules the timeout again.
 */
struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns);

/*
 * Correct the earliest schedule entries before the loop blocks, at most 256 in one call, and find
 * the time at which the loop must wake: an exact entry moves with its timeout, or goes with it. An
 * entry on the grid stays, because the loop usually wakes then for another timeout too.
 */
static inline void loop_rest(struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_STIRRED) != 0 || loop->first != SLOT_NONE)
		loop_correct_first(loop);
}

#endif
