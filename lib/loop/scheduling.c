/* SPDX-License-Identifier: MIT */
/*
 * Schedules the timeouts of a loop, checks those whose schedule entry has come up, and corrects
 * entries before the loop blocks (scheduling.h).
 *
 * loop_correct() does not change an entry that is due, because the next turn takes it anyway. If an
 * entry can stay, loop_correct() inserts it again at the same time, because schedule_doubt()
 * demands that.
 *
 * loop_correct_first() stores in loop->first the place of the earliest entry, if that is at an
 * exact deadline. loop_rest() has this entry checked again each time, because the program may have
 * moved or stopped the timeout. An entry at a rounded time is not corrected even then, so it is not
 * stored in loop->first.
 *
 * Tested by tests/unit/test_loop.c.
 */
#include "loop/scheduling.h"

#include "base/invariant.h"
#include "loop/round_down_to_grid.h"

/* Schedules a timeout at `at_ns`. If it was scheduled at another time, it no longer is. */
void loop_file_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns)
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

void loop_file_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout, uint64_t at_ns,
                     uint64_t rest_ns)
{
	unsigned before = timeout->grid;

	loop_file(loop, timeout, grid_next(before, !grid_holds(before, at_ns), rest_ns));
}

/* ---- before the loop blocks ---- */

#define REST_LOOKS_AT_ONCE 8 /* how many entries loop_correct_first() takes at a time */

/*
 * Returns true if an entry would wake the loop for nothing: it was made for an exact deadline (no
 * multiple of 2^grid ns), which its timeout no longer has.
 */
static bool place_is_stale(const struct place *place, uint64_t at_ns)
{
	const struct timerhub_timeout *timeout = place_timeout(place);

	return !grid_holds(place_grid(place), at_ns) && (!timeout || timeout->deadline_ns != at_ns);
}

/*
 * Returns true if a schedule entry can stay as it is. If the entry would wake the loop for nothing,
 * moves or removes it, and returns false.
 */
static bool loop_correct(struct timerhub_loop *loop, uint32_t index)
{
	struct place *place = &loop->places.table[index];
	struct timerhub_timeout *timeout = place_timeout(place);
	uint64_t at_ns = schedule_at_ns(&loop->schedule, index);

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
	if (loop->first != SLOT_NONE &&
	    grid_holds(place_grid(&loop->places.table[loop->first]), true_ns))
		loop->first = SLOT_NONE;
	loop->next_ns = schedule_next_ns(&loop->schedule);
	loop->unquiet &= ~(uint32_t)LOOP_STIRRED;
}
