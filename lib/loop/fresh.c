/* SPDX-License-Identifier: MIT */
/*
 * See fresh.h. Invariant: a timeout that is set is filed no later than its deadline, or its mark
 * says that it is in `fresh` or in the list. A timeout is at most once in each of the two. Tested
 * by tests/unit/test_loop.c.
 */
#include "fresh.h"

#include "grid.h"
#include "look.h"

/* Returns the deadline moved on with the clock from `from_ns` to `to_ns`; never UINT64_MAX. */
static uint64_t fresh_moved_ns(uint64_t deadline_ns, uint64_t from_ns, uint64_t to_ns)
{
	/* The delay fits: it was at most UINT64_MAX - 1 - from_ns. */
	return u64_min(u64_add_saturating(to_ns, deadline_ns - from_ns), UINT64_MAX - 1);
}

void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if ((timeout->mark & MARK_LISTED) != 0)
		return;
	timeout->mark |= MARK_LISTED;
	loop->listed[loop->listed_count++] = timeout->place;
}

void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns)
{
	struct timerhub_loop_front *front = &loop->front;
	uint64_t base_ns = front->base_ns;

	for (uint32_t i = 0; i < front->fresh_count; i++) {
		struct timerhub_timeout *timeout = front->fresh[i];

		if (!timeout)
			continue;
		timeout->mark &= ~TIMERHUB_TIMEOUT_FRESH;
		if (timeout->deadline_ns == UINT64_MAX)
			continue;
		timeout->deadline_ns = fresh_moved_ns(timeout->deadline_ns, base_ns, now_ns);
		/* Inside a turn the list tells what callbacks have set. */
		if (timeout->deadline_ns < timeout->filed_ns || front->turning)
			fresh_list(loop, timeout);
	}
	front->fresh_count = 0;
	front->base_ns = now_ns;
	front->delay_max_ns = now_ns == UINT64_MAX ? 0 : UINT64_MAX - 1 - now_ns;
}

void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	uint32_t fresh = timeout->mark & TIMERHUB_TIMEOUT_FRESH;

	if (fresh == 0)
		return;
	loop->front.fresh[fresh - 1] = NULL;
	timeout->mark &= ~TIMERHUB_TIMEOUT_FRESH;
}

/* File a timeout that was set since it was filed last: its whole length remains. */
static void fresh_file_one(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	uint64_t now_ns = loop->front.base_ns;
	uint64_t deadline_ns = timeout->deadline_ns;
	unsigned shift = deadline_ns > now_ns ? grid_for(deadline_ns - now_ns) : 0;

	loop_file(loop, timeout, shift);
}

void fresh_file(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->listed_count; i++) {
		struct place *place = &loop->places.table[loop->listed[i]];
		struct timerhub_timeout *timeout = place->timeout;

		if (!timeout) {
			place->mark &= ~MARK_LISTED;
			continue;
		}
		timeout->mark &= ~MARK_LISTED;
		if (timeout->deadline_ns < timeout->filed_ns)
			fresh_file_one(loop, timeout);
	}
	loop->listed_count = 0;
}
