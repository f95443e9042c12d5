/* SPDX-License-Identifier: MIT */
/*
 * Implements fresh_timeouts.h. If a set timeout is neither in `fresh` nor in the list, it is
 * scheduled no later than its deadline. Tested by tests/unit/test_loop.c.
 */
#include "loop/fresh_timeouts.h"

#include "loop/round_down_to_grid.h"
#include "loop/scheduling.h"

#define FRESH_AHEAD 12   /* number of list entries by which fresh_fetch() prefetches in advance */
#define SMALL_LOOP_MAX 8 /* places, each of which may cause a wake-up in vain in a length */

/*
 * Empty `fresh` into the list: callbacks have set these timeouts, and a turn skips listed ones.
 */
static __attribute__((noinline)) void fresh_list_all(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->front.fresh_count; i++)
		if (loop->front.fresh[i] != &loop->gone)
			fresh_list(loop, loop->front.fresh[i]);
	loop->front.fresh_count = 0;
}

/*
 * Returns the deadline if the sum is not above the deadline before: the timeout was stopped, the
 * clock was set back, or the sum has no place below UINT64_MAX.
 */
static uint64_t fresh_far_ns(uint64_t before_ns, uint64_t sum_ns, bool is_back)
{
	if (before_ns == UINT64_MAX)
		return UINT64_MAX;
	return is_back ? sum_ns : UINT64_MAX - 1;
}

void fresh_move(struct timerhub_loop *loop, uint64_t base_ns, uint64_t now_ns)
{
	struct timerhub_loop_front *front = &loop->front;
	struct timerhub_timeout *const *at = front->fresh, *const *end = at + front->fresh_count;
	uint64_t passed_ns = now_ns - base_ns; /* modulo 2^64, if the wall clock was set back */

	for (; at < end; at++) {
		struct timerhub_timeout *timeout = *at;
		uint64_t before_ns = timeout->deadline_ns;
		uint64_t deadline_ns = before_ns + passed_ns;

		timeout->fresh = 0;
		if (__builtin_expect(deadline_ns + 1 <= before_ns, 0))
			deadline_ns = fresh_far_ns(before_ns, deadline_ns, now_ns < base_ns);
		timeout->deadline_ns = deadline_ns;
		if (__builtin_expect(deadline_ns < timeout->filed_ns, 0))
			fresh_list(loop, timeout);
	}
	if (front->turning)
		fresh_list_all(loop);
	else
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
 * The remaining time of a timeout that was just set is its whole length, and decides the grid. A
 * small loop schedules it exactly (on the grid of 1 ns), so that it needs one wake-up if it stays.
 */
static void fresh_file_one(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	uint64_t now_ns = loop->front.base_ns;
	uint64_t deadline_ns = timeout->deadline_ns;
	bool is_rounded = deadline_ns > now_ns && loop->places.used > SMALL_LOOP_MAX;

	loop_file(loop, timeout, is_rounded ? grid_for(deadline_ns - now_ns) : 0);
}

/* Prefetch what later entries of the list need. */
CPU_FETCHES void fresh_fetch(const struct timerhub_loop *loop, uint32_t i)
{
	const struct place *table = loop->places.table;
	const struct timer_filing *list = loop->filings;

	if (i + 2 * FRESH_AHEAD < loop->listed_count) {
		__builtin_prefetch(&table[list[i + 2 * FRESH_AHEAD].place]);
		__builtin_prefetch(&list[list[i + 2 * FRESH_AHEAD].place], 1);
	}
	if (i + FRESH_AHEAD < loop->listed_count)
		__builtin_prefetch(place_timeout(&table[list[i + FRESH_AHEAD].place]), 1);
}

void fresh_file(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->listed_count; i++) {
		struct place *place = &loop->places.table[loop->filings[i].place];
		struct timerhub_timeout *timeout = place_timeout(place);

		fresh_fetch(loop, i);
		if (!timeout) {
			place->holder &= ~PLACE_LISTED;
			continue;
		}
		timeout->is_listed = 0;
		if (timeout->deadline_ns < timeout->filed_ns)
			fresh_file_one(loop, timeout);
	}
	loop->listed_count = 0;
}
