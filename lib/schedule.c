/* SPDX-License-Identifier: MIT */
/*
 * See schedule.h. The owner calls. Invariant: what is filed in the heap is not later than the end
 * of the wheel base's finest bucket, and what is in the wheel is later; so the heap's first, if
 * there is one, is the first of all. The wheel gives the cost, the heap the order and the
 * nanosecond. tests/unit/test_schedule.c holds it against a sorted array in virtual time.
 */
#include "schedule.h"

void schedule_init(struct schedule *schedule, struct wheel_level *levels,
                   struct heap_entry *entries, struct timer_filing *filings)
{
	wheel_init(&schedule->wheel, levels, filings);
	heap_init(&schedule->heap, entries, filings);
	schedule->filings = filings;
	schedule->cascaded = 0;
}

static void schedule_file(struct schedule *schedule, uint32_t slot)
{
	if (wheel_covers(&schedule->wheel, schedule->filings[slot].at_ns))
		wheel_insert(&schedule->wheel, slot);
	else
		heap_insert(&schedule->heap, slot);
}

void schedule_remove(struct schedule *schedule, uint32_t slot)
{
	uint32_t where = schedule->filings[slot].where;

	if (where == 0)
		return;
	if ((where & HEAP_WHERE) != 0)
		heap_remove(&schedule->heap, slot);
	else
		wheel_remove(&schedule->wheel, slot);
}

void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns)
{
	struct timer_filing *filing = &schedule->filings[slot];

	if (filing->where != 0) {
		if (filing->at_ns == at_ns)
			return;
		if ((filing->where & HEAP_WHERE) == 0 &&
		    wheel_move_within(&schedule->wheel, slot, at_ns))
			return;
		schedule_remove(schedule, slot);
	}
	if (at_ns == UINT64_MAX)
		return;
	filing->at_ns = at_ns;
	schedule_file(schedule, slot);
}

/* Move the wheel's base, and file again what that brought out. */
static void schedule_enter(struct schedule *schedule, uint64_t base_ns)
{
	uint32_t slot = wheel_enter(&schedule->wheel, base_ns);

	while (slot != SLOT_NONE) {
		uint32_t next = schedule->filings[slot].next;

		schedule_file(schedule, slot);
		schedule->cascaded++;
		slot = next;
	}
}

uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns)
{
	while (schedule->heap.count == 0) {
		uint64_t bound_ns = wheel_bound_ns(&schedule->wheel);

		if (bound_ns > now_ns) {
			/* Nothing is due. Keep the base near, so that new slots are filed low. */
			schedule_enter(schedule, now_ns);
			return SLOT_NONE;
		}
		schedule_enter(schedule, bound_ns);
	}
	return heap_first_ns(&schedule->heap) <= now_ns ? heap_take(&schedule->heap) : SLOT_NONE;
}

uint64_t schedule_next_ns(struct schedule *schedule)
{
	if (schedule->heap.count > 0)
		return heap_first_ns(&schedule->heap);
	return wheel_bound_ns(&schedule->wheel);
}
