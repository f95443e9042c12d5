/* SPDX-License-Identifier: MIT */
/*
 * Schedules timeouts, and decides what becomes of a timeout when its schedule entry comes up.
 *
 * A schedule entry says when the loop next reads the deadline of a timeout. It is either exact,
 * which means at the deadline itself, or on the grid, which means at a multiple of a power of two
 * before it.
 */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "base/invariant.h"
#include "loop/loop.h"

/*
 * Schedules a timeout at the last multiple of 2^shift ns before its deadline. If that time has
 * passed, or is very near to the deadline, the timeout is scheduled exactly at the deadline.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/* Schedules a timeout at `at_ns`. */
void loop_file_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns);

/*
 * Schedules a timeout again. Its last schedule entry was for `at_ns`, but its deadline is later:
 * `rest_ns` from now. The new entry is usually for the deadline rounded down to a multiple of 2^n
 * ns, with the n of the last entry, so that one wake-up serves many timeouts.
 */
void loop_file_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns,
                     uint64_t rest_ns);

/*
 * Moves or removes the earliest schedule entries if they would wake the loop for nothing, because
 * their timeouts were moved or stopped. Then finds out when the loop must wake up. It is a function
 * of its own, so that loop_rest(), which calls it, stays short enough to be inlined.
 */
void loop_correct_first(struct timerhub_loop *loop);

/*
 * Decides what becomes of a timeout whose schedule entry, for the time `at_ns`, has come up.
 * `place` is the timeout's index in the loop's table.
 *
 * Returns the timeout if its callback must be called now, because it is due and no other timeout
 * has an earlier deadline. Otherwise returns NULL, and has scheduled the timeout again if it is
 * set. It is inline because a turn does this for each entry.
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
	/*
	 * A stopped timeout needs no entry. A timeout that a callback has just set is scheduled
	 * before timerhub_loop_turn() returns.
	 */
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
 * Corrects the earliest schedule entries before the loop blocks, and finds out when the loop must
 * wake up.
 *
 * If a timeout was moved or stopped, its entry would wake the loop for nothing. So an entry for an
 * exact deadline is moved or taken out. An entry on the grid is left alone, because at such times
 * the loop usually has to wake for other timeouts too.
 *
 * It corrects as many entries as necessary, without a limit. That is no extra work, because the
 * loop would have to read each of these deadlines anyway, when the entry comes up.
 */
static inline void loop_rest(struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_STIRRED) != 0 || loop->first != SLOT_NONE)
		loop_correct_first(loop);
}

#endif
