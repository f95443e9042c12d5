/* SPDX-License-Identifier: MIT */
/*
 * Schedules timeouts, and decides what becomes of a timeout when its schedule entry comes up.
 *
 * A schedule entry says when the loop next reads the deadline of a timeout. It is either exact,
 * which means at the deadline itself, or on the grid, which means at a multiple of a power of two
 * before it.
 *
 * loop_recheck() does not schedule a timeout that is in the array `fresh` or in the list. The
 * timeout was set during this turn, and the end of the turn schedules it.
 */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "base/invariant.h"
#include "loop/loop.h"

/*
 * Schedules a timeout at the last multiple of 2^shift ns before its deadline, or exactly at the
 * deadline if that time has passed or is very near.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/* Schedules a timeout at `at_ns`. */
void loop_file_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns);

/*
 * Replaces a timeout's schedule entry, which was at `at_ns`, by one for its present deadline, which
 * is `rest_ns` away.
 */
void loop_file_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns,
                     uint64_t rest_ns);

/*
 * The rare part of loop_rest(): moves or removes the earliest schedule entries if their timeouts
 * were moved or stopped, and finds out when the loop must wake up.
 */
void loop_correct_first(struct timerhub_loop *loop);

/*
 * Decides what to do with an entry that schedule_take() has just returned: that of `place`, at the
 * time `at_ns`. Returns the timeout if its callback must be called now, and otherwise NULL.
 */
static inline struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place,
                                                    uint64_t at_ns)
{
	struct timerhub_timeout *timeout = place_timeout(&loop->places.table[place]);
	uint64_t now_ns = loop->turn_ns;

	/*
	 * The entry is no longer in the schedule, so the loop must find out again which entry is
	 * the first before it blocks.
	 */
	loop->unquiet |= LOOP_STIRRED;
	if (!timeout) {
		loop->places.table[place].filed_ns = UINT64_MAX;
		return NULL;
	}
	invariant(timeout->place == place);
	timeout->filed_ns = UINT64_MAX;
	if (timeout->fresh != 0 || timeout->is_listed || timeout->deadline_ns == UINT64_MAX)
		return NULL;
	if (timeout->deadline_ns > now_ns) {
		loop_file_again(loop, timeout, at_ns, timeout->deadline_ns - now_ns);
		return NULL;
	}
	if (timeout->deadline_ns >
	    at_ns) { /* another timeout may be due before it, so it must wait its turn */
		loop_file_at(loop, timeout, timeout->deadline_ns);
		return NULL;
	}
	return timeout;
}

/*
 * Updates loop->next_ns, the time at which the loop must wake up. Call it before the loop blocks.
 */
static inline void loop_rest(struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_STIRRED) != 0 || loop->first != SLOT_NONE)
		loop_correct_first(loop);
}

#endif
