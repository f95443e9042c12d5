/* SPDX-License-Identifier: MIT */
/*
 * Keeps the timeouts that a loop has to work on before it blocks (fresh_timeouts.h). A timeout that
 * is set is in one of three places. It is in the array `fresh` if it was set by a delay since the
 * loop last read its clock. It is in the list if it may be scheduled too late. Otherwise it is
 * scheduled no later than its deadline.
 *
 * If the program gives the time (is_exact), `fresh` stays empty. So that no call puts a timeout
 * there, fresh_count says from the start that `fresh` is full.
 *
 * fresh_move() puts all fresh timeouts into the list if a turn is under way, because callbacks have
 * just set them. They are scheduled at the end of the turn, so they do not expire in it.
 *
 * Tested by tests/unit/test_loop.c.
 */
#include "loop/fresh_timeouts.h"

#include "base/invariant.h"
#include "loop/round_down_to_grid.h"
#include "loop/scheduling.h"

#define FRESH_AHEAD 12   /* how many entries of the list fresh_fetch() prefetches ahead */
#define SMALL_LOOP_MAX 8 /* up to so many timeouts are scheduled exactly; see fresh_file_one() */

/*
 * Empties the array `fresh`, and puts its timeouts into the list from which fresh_file() schedules.
 */
static __attribute__((noinline)) void fresh_list_all(struct timerhub_loop *loop)
{
	/* The array `fresh` is used only if the loop reads a clock itself (is_exact is false). */
	invariant(!loop->is_exact && loop->front.fresh_count <= TIMERHUB_LOOP_FRESH_MAX);
	for (uint32_t i = 0; i < loop->front.fresh_count; i++)
		if (loop->front.fresh[i] != &loop->gone)
			fresh_list(loop, loop->front.fresh[i]);
	loop->front.fresh_count = 0;
}

/*
 * The rare cases of fresh_move(), which adds the time that has passed to a deadline: the timeout
 * was stopped, the clock was set back (`is_back`), or the sum is too large. Returns the deadline to
 * store.
 */
static uint64_t fresh_far_ns(uint64_t before_ns, uint64_t sum_ns, bool is_back)
{
	if (before_ns == UINT64_MAX)
		return UINT64_MAX;                /* a stopped timeout stays stopped */
	return is_back ? sum_ns : UINT64_MAX - 1; /* UINT64_MAX - 1 is the latest deadline */
}

void fresh_move(struct timerhub_loop *loop, uint64_t base_ns, uint64_t now_ns)
{
	struct timerhub_loop_front *front = &loop->front;
	struct timerhub_timeout *const *at = front->fresh, *const *end = at + front->fresh_count;
	uint64_t passed_ns = now_ns - base_ns; /* wraps around if the wall clock was set back */

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
 * Schedules a timeout that was just set. Its schedule entry is usually at a rounded time before the
 * deadline (round_down_to_grid.h).
 */
static void fresh_file_one(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	uint64_t now_ns = loop->front.base_ns;
	uint64_t deadline_ns = timeout->deadline_ns;
	/*
	 * In a loop with few timeouts, use the deadline itself. Then a timeout that is not moved
	 * wakes the loop only once.
	 */
	bool is_rounded = deadline_ns > now_ns && loop->places.used > SMALL_LOOP_MAX;

	loop_file(loop, timeout, is_rounded ? grid_for(deadline_ns - now_ns) : 0);
}

/*
 * Prefetches the timeouts that fresh_file() will schedule next, and their table entries, because
 * both are spread over the memory.
 */
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
	invariant(loop->listed_count <=
	          loop->places.used); /* each place is in the list at most once */
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
