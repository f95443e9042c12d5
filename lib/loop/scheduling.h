/* SPDX-License-Identifier: MIT */
/*
 * Schedules timeouts, and decides what becomes of one whose schedule entry has come up.
 *
 * An entry says when the loop next reads the deadline of a timeout. It lies on the grid, which is
 * the multiples of a power of two, or it is exact, which means at the deadline itself.
 */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "loop/loop.h"

/*
 * Schedules a timeout at the last multiple of 2^shift ns before its deadline, or exactly at the
 * deadline if that multiple has passed or is too near to the deadline.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/*
 * Does the work of loop_rest() when there is some; it is a function so that loop_rest() is short.
 */
void loop_correct_first(struct timerhub_loop *loop);

/*
 * Decides what becomes of a timeout whose schedule entry, for `at_ns`, was just taken out. The
 * timeout is the one that has the place (the index in the loop's table) now.
 *
 * Returns the timeout if its callback is to be called: it is due, and no other one has an earlier
 * deadline. Otherwise returns NULL, and has scheduled the timeout again if it is set.
 */
struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns);

/*
 * Corrects the earliest schedule entries before the loop blocks, and finds out when it must wake.
 *
 * If a timeout was moved or stopped, its exact entry would wake the loop for nothing, so the entry
 * is moved or taken out. An entry on the grid is left alone, because at that time the loop usually
 * wakes for other timeouts too.
 *
 * It corrects as many entries as it takes, without a limit. That is no extra work, because the loop
 * would read each of these deadlines anyhow when the entry came up.
 */
static inline void loop_rest(struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_STIRRED) != 0 || loop->first != SLOT_NONE)
		loop_correct_first(loop);
}

#endif
