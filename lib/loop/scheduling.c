/* SPDX-License-Identifier: MIT */
/* Schedules timeouts, and corrects schedule entries; see scheduling.h. Tested by test_loop.c. */
#include "loop/scheduling.h"

#include "loop/round_down_to_grid.h"

static void loop_file_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                         uint64_t at_ns)
{
	loop->unquiet |= LOOP_STIRRED;
	timeout->filed_ns = at_ns;
	schedule_insert(&loop->schedule, timeout->place, at_ns);
}

void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift)
{
	timeout->grid = (uint8_t)shift;
	loop_file_at(loop, timeout,
	             grid_instant_ns(shift, timeout->deadline_ns, loop->front.base_ns));
}

static void loop_file_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                            uint64_t at_ns, uint64_t rest_ns)
{
	unsigned before = timeout->grid;

	loop_file(loop, timeout, grid_next(before, !grid_holds(before, at_ns), rest_ns));
}

struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns)
{
	struct timerhub_timeout *timeout = place_timeout(&loop->places.table[place]);
	uint64_t now_ns = loop->turn_ns;

	loop->unquiet |= LOOP_STIRRED;
	if (!timeout) {
		loop->places.table[place].filed_ns = UINT64_MAX;
		return NULL;
	}
	timeout->filed_ns = UINT64_MAX;
	/* If a timeout was set since the turn began, the end of the turn schedules the timeout. */
	if (timeout->fresh != 0 || timeout->is_listed || timeout->deadline_ns == UINT64_MAX)
		return NULL;
	if (timeout->deadline_ns > now_ns) {
		loop_file_again(loop, timeout, at_ns, timeout->deadline_ns - now_ns);
		return NULL;
	}
	if (timeout->deadline_ns > at_ns) { /* other timeouts may be due before this deadline */
		loop_file_at(loop, timeout, timeout->deadline_ns);
		return NULL;
	}
	return timeout;
}

/* ---- before the loop blocks ---- */

#define REST_LOOKS_AT_ONCE 8

/* Returns whether the entry at `at_ns` is exact, and its timeout was moved, stopped or removed. */
static bool place_is_stale(const struct place *place, uint64_t at_ns)
{
	const struct timerhub_timeout *timeout = place_timeout(place);

	return !grid_holds(place_grid(place), at_ns) && (!timeout || timeout->deadline_ns != at_ns);
}

/* Correct a stale entry and return false, or return true. */
static bool loop_correct(struct timerhub_loop *loop, uint32_t index)
{
	struct place *place = &loop->places.table[index];
	struct timerhub_timeout *timeout = place_timeout(place);
	uint64_t at_ns = schedule_at_ns(&loop->schedule, index);

	/* Leave an entry that is due, because the next turn checks all due entries. */
	if (at_ns <= loop->turn_ns || !place_is_stale(place, at_ns)) {
		schedule_insert(&loop->schedule, index, at_ns);
		return true;
	}
	if (timeout && timeout->deadline_ns != UINT64_MAX) {
		loop_file_again(loop, timeout, at_ns, timeout->deadline_ns - loop->turn_ns);
		return false;
	}
	schedule_remove(&loop->schedule, index);
	*(timeout ? &timeout->filed_ns : &place->filed_ns) = UINT64_MAX;
	return false;
}

void loop_correct_first(struct timerhub_loop *loop)
{
	uint64_t true_ns = UINT64_MAX;
	uint32_t slots[REST_LOOKS_AT_ONCE];
	unsigned count;

	if ((loop->unquiet & LOOP_STIRRED) == 0 &&
	    !place_is_stale(&loop->places.table[loop->first], loop->next_ns))
		return;
	loop->first = SLOT_NONE;
	do {
		count = schedule_doubt(&loop->schedule, true_ns, slots, REST_LOOKS_AT_ONCE);
		for (unsigned i = 0; i < count; i++) {
			uint64_t at_ns = schedule_at_ns(&loop->schedule, slots[i]);

			if (!loop_correct(loop, slots[i]) || at_ns >= true_ns)
				continue;
			true_ns = at_ns;
			loop->first = slots[i];
		}
	} while (count > 0);
	/* An entry on its grid is never stale, so the turns need not read its timeout. */
	if (loop->first != SLOT_NONE &&
	    grid_holds(place_grid(&loop->places.table[loop->first]), true_ns))
		loop->first = SLOT_NONE;
	loop->next_ns = schedule_next_ns(&loop->schedule);
	loop->unquiet &= ~(uint32_t)LOOP_STIRRED;
}
