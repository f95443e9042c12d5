/* SPDX-License-Identifier: MIT */
/*
 * Implements fresh_timeouts.h: adds the passed time to the deadlines of the array `fresh`, and
 * schedules the timeouts of the list. Invariant: if a set timeout is neither in `fresh` nor in the
 * list, it is scheduled no later than its deadline. A timeout is at most once in `fresh`, and its
 * place at most once in the list. Tested by tests/unit/test_loop.c.
 */
#include "loop/fresh_timeouts.h"

#include "loop/round_down_to_grid.h"
#include "loop/scheduling.h"

#define FRESH_AHEAD 12 /* number of list entries by which fresh_fetch() prefetches in advance */

void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timeout->is_listed)
		return;
	timeout->is_listed = 1;
	loop->listed[loop->listed_count++] = timeout->place;
}

/*
 * Returns `now_ns` plus `delay_ns`, but at most UINT64_MAX - 1. fresh_move_on() calls
 * fresh_far_ns() for deadlines near UINT64_MAX. If the wall clock was set back, fresh_move_on()
 * calls fresh_far_ns() for all deadlines.
 */
static uint64_t fresh_far_ns(uint64_t delay_ns, uint64_t now_ns)
{
	return u64_min(u64_add_saturating(now_ns, delay_ns), UINT64_MAX - 1);
}

/*
 * Put all timeouts of the array `fresh` into the list. Callbacks have set these timeouts. While a
 * turn runs, loop_recheck() skips listed timeouts.
 */
static void fresh_list_all(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->front.fresh_count; i++)
		if (loop->front.fresh[i] != &loop->gone)
			fresh_list(loop, loop->front.fresh[i]);
}

void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns)
{
	struct timerhub_loop_front *front = &loop->front;
	uint64_t base_ns = front->base_ns, passed_ns = now_ns - base_ns;
	/* The largest deadline that stays below UINT64_MAX when `passed_ns` is added. */
	uint64_t near_ns = now_ns >= base_ns ? UINT64_MAX - 1 - passed_ns : 0;
	uint32_t count = front->fresh_count;

	front->base_ns = now_ns;
	front->delay_max_ns = UINT64_MAX - 1 - now_ns;
	if (count == 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		struct timerhub_timeout *timeout = front->fresh[i];
		uint64_t deadline_ns = timeout->deadline_ns;

		timeout->fresh = 0;
		if (deadline_ns <= near_ns)
			deadline_ns += passed_ns;
		/* UINT64_MAX would mean that the timeout was stopped */
		else if (deadline_ns != UINT64_MAX)
			deadline_ns = fresh_far_ns(deadline_ns - base_ns, now_ns);
		timeout->deadline_ns = deadline_ns;
		if (deadline_ns < timeout->filed_ns)
			fresh_list(loop, timeout);
	}
	if (front->turning)
		fresh_list_all(loop);
	front->fresh_count = 0;
}

void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timeout->fresh == 0)
		return;
	loop->front.fresh[timeout->fresh - 1] = &loop->gone;
	timeout->fresh = 0;
}

/*
 * Schedule a timeout that was set since it was last scheduled. The remaining time is the timeout's
 * whole length, and decides the grid.
 */
static void fresh_file_one(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	uint64_t now_ns = loop->front.base_ns;
	uint64_t deadline_ns = timeout->deadline_ns;
	unsigned shift = deadline_ns > now_ns ? grid_for(deadline_ns - now_ns) : 0;

	loop_file(loop, timeout, shift);
}

/*
 * Prefetch the memory that later entries of the list need. The timeouts of a long list are not in
 * the cache.
 */
CPU_FETCHES void fresh_fetch(const struct timerhub_loop *loop, uint32_t i)
{
	if (i + 2 * FRESH_AHEAD < loop->listed_count) {
		__builtin_prefetch(&loop->places.table[loop->listed[i + 2 * FRESH_AHEAD]]);
		__builtin_prefetch(&loop->filings[loop->listed[i + 2 * FRESH_AHEAD]], 1);
	}
	if (i + FRESH_AHEAD < loop->listed_count)
		__builtin_prefetch(loop->places.table[loop->listed[i + FRESH_AHEAD]].timeout, 1);
}

void fresh_file(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->listed_count; i++) {
		struct place *place = &loop->places.table[loop->listed[i]];
		struct timerhub_timeout *timeout = place->timeout;

		fresh_fetch(loop, i);
		if (!timeout) {
			place->is_listed = 0;
			continue;
		}
		timeout->is_listed = 0;
		if (timeout->deadline_ns < timeout->filed_ns)
			fresh_file_one(loop, timeout);
	}
	loop->listed_count = 0;
}
