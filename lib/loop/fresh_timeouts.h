/* SPDX-License-Identifier: MIT */
/*
 * Keeps each timeout that the program has set by a delay after the loop's last reading of the
 * clock. The delay counts from this reading. At the next reading, fresh_move_on() moves each
 * deadline on by the time between the two readings. If a timeout's schedule entry is later than its
 * deadline, the timeout's place is put into the list. Each turn schedules the timeouts of the list.
 * A timeout that is set and stopped in one turn is therefore never scheduled.
 */
#ifndef TIMERHUB_FRESH_TIMEOUTS_H
#define TIMERHUB_FRESH_TIMEOUTS_H

#include "loop/loop.h"

/* The rest of fresh_move_on(). */
void fresh_move(struct timerhub_loop *loop, uint64_t base_ns, uint64_t now_ns);

/*
 * Add the time since the last reading of the clock to the deadlines that were set by delay.
 * `now_ns` is a new reading of the clock. After fresh_move_on() new delays count from `now_ns`.
 */
static inline void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns)
{
	uint64_t base_ns = loop->front.base_ns;

	loop->front.base_ns = now_ns;
	loop->front.delay_max_ns = UINT64_MAX - 1 - now_ns;
	if (loop->front.fresh_count != loop->idle_count)
		fresh_move(loop, base_ns, now_ns);
}

/* Put the timeout's place into the list of places that fresh_file() checks. */
static inline void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timeout->is_listed)
		return;
	timeout->is_listed = 1;
	loop->block_ns = 0;
	loop->filings[loop->listed_count++].place = timeout->place;
}

/* Remove the timeout from the loop's array `fresh`. */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/*
 * Empty the list. If a timeout of the list is scheduled later than its deadline, schedule the
 * timeout again.
 */
void fresh_file(struct timerhub_loop *loop);

#endif
