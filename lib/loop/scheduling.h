/* SPDX-License-Identifier: MIT */
/*
 * Schedules timeouts, and decides what becomes of one whose schedule entry has come up.
 *
 * An entry says when the loop next reads the deadline of a timeout. It lies on the grid, which is
 * the multiples of a power of two, or it is exact, which means at the deadline itself.
 */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "base/invariant.h"
#include "loop/loop.h"

/*
 * Schedules a timeout at the last multiple of 2^shift ns before its deadline, or exactly at the
 * deadline if that multiple has passed or is too near to the deadline.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/* Adds a schedule entry at `at_ns` for a timeout that has no entry. */
void loop_file_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns);

/*
 * Schedules a timeout whose entry at `at_ns` came up too early: `rest_ns` remain to its deadline.
 * It usually keeps its grid (the step to which the time of an entry is rounded down).
 */
void loop_file_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns,
                     uint64_t rest_ns);

/*
 * Does the work of loop_rest() when there is some; it is a function so that loop_rest() is short.
 */
void loop_correct_first(struct timerhub_loop *loop);

/*
 * Decides what becomes of a timeout whose schedule entry, for `at_ns`, was just taken out. The
 * timeout is the one that has the place (the index in the loop's table) now.
 *
 * Returns the timeout if its callback is to be called: it is due, and no other one has an earlier
 * deadline. Otherwise returns NULL, and has scheduled the timeout again if it is set. It is inline
 * because a turn does it for each entry.
 */
static inline struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place,
                                                    uint64_t at_ns)
{
	struct timerhub_timeout *timeout = place_timeout(&loop->places.table[place]);
	uint64_t now_ns = loop->turn_ns;

	/* for each entry, because a callback may have asked how long the loop may block */
	loop->unquiet |= LOOP_STIRRED;
	if (!timeout) {
		loop->places.table[place].filed_ns = UINT64_MAX;
		return NULL;
	}
	invariant(timeout->place == place);
	timeout->filed_ns = UINT64_MAX;
	/* A timeout that was set since the turn began is scheduled at the end of the turn. */
	if (timeout->fresh != 0 || timeout->is_listed || timeout->deadline_ns == UINT64_MAX)
		return NULL;
	if (timeout->deadline_ns > now_ns) {
		loop_file_again(loop, timeout, at_ns, timeout->deadline_ns - now_ns);
		return NULL;
	}
	if (timeout->deadline_ns > at_ns) { /* others may have been due before it: wait its turn */
		loop_file_at(loop, timeout, timeout->deadline_ns);
		return NULL;
	}
	return timeout;
}

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
