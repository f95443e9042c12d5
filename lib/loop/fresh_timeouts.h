/* SPDX-License-Identifier: MIT */
/*
 * Timeouts that were set by delay since the loop's last reading of the clock, and the list of those
 * whose schedule entry is too late. A timeout that is set and stopped in one turn is never
 * scheduled. README.md explains both.
 */
#ifndef TIMERHUB_FRESH_TIMEOUTS_H
#define TIMERHUB_FRESH_TIMEOUTS_H

#include "loop/loop.h"

/* The rest of fresh_move_on(). */
void fresh_move(struct timerhub_loop *loop, uint64_t base_ns, uint64_t now_ns);

/* The clock was read: move fresh deadlines on by the time since the last reading. */
static inline void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns)
{
	uint64_t base_ns = loop->front.base_ns;

	loop->front.base_ns = now_ns;
	loop->front.delay_max_ns = UINT64_MAX - 1 - now_ns;
	if (loop->front.fresh_count != loop->idle_count)
		fresh_move(loop, base_ns, now_ns);
}

static inline void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timeout->is_listed)
		return;
	timeout->is_listed = 1;
	loop->quiet_ns = 0;
	loop->filings[loop->listed_count++].place = timeout->place;
}

void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Empty the list into the schedule. */
void fresh_file(struct timerhub_loop *loop);

#endif
