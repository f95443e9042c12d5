/* SPDX-License-Identifier: MIT */
/* Schedules timeouts, and checks those whose schedule entry has come up. */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "loop/loop.h"

/* Schedule a timeout on the grid of `shift`; if that is too near, exactly at the deadline. */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/* The rest of loop_rest(). */
void loop_correct_first(struct timerhub_loop *loop);

/*
 * The place's entry at `at_ns` was taken out of the schedule. Returns the timeout if it is due and
 * none has an earlier deadline. Else returns NULL, and schedules it again if it is set.
 */
struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns);

/*
 * Correct the earliest schedule entries before the loop blocks, and find the time at which it must
 * wake: an exact entry moves with its timeout, or goes with it. An entry on the grid stays, because
 * the loop usually wakes then for another timeout too. Not limited: the looks of a turn are not
 * either, and a correction is a look that comes earlier.
 */
static inline void loop_rest(struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_STIRRED) != 0 || loop->first != SLOT_NONE)
		loop_correct_first(loop);
}

#endif
