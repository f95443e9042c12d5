/* SPDX-License-Identifier: MIT */
/* See look.h. Tested by tests/unit/test_loop.c. */
#include "look.h"

#include "grid.h"

static void loop_file_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                         uint64_t at_ns)
{
	timeout->filed_ns = at_ns;
	schedule_insert(&loop->schedule, timeout->place, at_ns);
}

void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift)
{
	uint32_t rest = timeout->mark & ((UINT32_C(1) << MARK_GRID_SHIFT) - 1);

	timeout->mark = rest | shift << MARK_GRID_SHIFT;
	loop_file_at(loop, timeout,
	             grid_instant_ns(shift, timeout->deadline_ns, loop->front.base_ns));
}

static void loop_file_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                            uint64_t at_ns, uint64_t rest_ns)
{
	unsigned before = timeout->mark >> MARK_GRID_SHIFT;

	loop_file(loop, timeout, grid_next(before, !grid_holds(before, at_ns), rest_ns));
}

struct timerhub_timeout *loop_look(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns)
{
	struct timerhub_timeout *timeout = loop->places.table[place].timeout;
	uint64_t now_ns = loop->turn_ns;

	if (!timeout) {
		loop->places.table[place].filed_ns = UINT64_MAX;
		return NULL;
	}
	timeout->filed_ns = UINT64_MAX;
	/* One that was set since the turn began is filed when the turn ends. */
	if ((timeout->mark & (TIMERHUB_TIMEOUT_FRESH | MARK_LISTED)) != 0 ||
	    timeout->deadline_ns == UINT64_MAX)
		return NULL;
	if (timeout->deadline_ns > now_ns) {
		loop_file_again(loop, timeout, at_ns, timeout->deadline_ns - now_ns);
		return NULL;
	}
	if (timeout->deadline_ns > at_ns) { /* others may be due before */
		loop_file_at(loop, timeout, timeout->deadline_ns);
		return NULL;
	}
	return timeout;
}
