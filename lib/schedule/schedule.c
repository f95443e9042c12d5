/* SPDX-License-Identifier: MIT */
/*
 * A schedule has three parts: a timing wheel, a sorted array (the run) and a heap (schedule.h). The
 * wheel makes insertion cheap. The run and the heap keep the entries of the wheel's present bucket
 * in order, to the nanosecond. As long as one of these two has an entry, the earliest timer is
 * there, because everything in the wheel is due after that bucket. A timer that is alone in its
 * bucket needs no sort, and is taken straight from the wheel. So is the first timer of a long
 * bucket, if it is known: a later call sorts the others.
 *
 * tests/unit/test_schedule.c compares the schedule with a sorted array in virtual time.
 */
#include "schedule/schedule.h"

#include <string.h>

_Static_assert(RUN_TIME_BITS == WHEEL_FINEST_SHIFT, "a run holds one bucket of the finest level");

int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots)
{
	size_t levels_bytes = WHEEL_LEVELS * sizeof(struct wheel_level);
	size_t chunks_bytes = wheel_chunks_for(slots) * sizeof(struct wheel_chunk);
	size_t dues_bytes = slots * sizeof(struct timer_due);
	struct memory memory = { .base = NULL };
	int result = memory_reserve(&memory, levels_bytes + chunks_bytes + 3 * dues_bytes);
	char *chunks, *levels, *dues;

	if (result < 0)
		return result;
	chunks = memory.base;
	levels = chunks + chunks_bytes;
	dues = levels +
	       levels_bytes; /* last, because struct timer_due is aligned to 4 bytes only */
	wheel_init(&schedule->wheel, (struct wheel_level *)(void *)levels,
	           (struct wheel_chunk *)(void *)chunks, wheel_chunks_for(slots), filings);
	run_init(&schedule->run, (struct timer_due *)(void *)dues,
	         (struct timer_due *)(void *)(dues + dues_bytes), filings);
	heap_init(&schedule->heap, (struct timer_due *)(void *)(dues + 2 * dues_bytes), filings);
	schedule->filings = filings;
	schedule->taken_ns = 0;
	schedule->cascaded = 0;
	schedule->memory = memory;
	return 0;
}

void schedule_close(struct schedule *schedule)
{
	memory_release(&schedule->memory);
}

uint64_t schedule_at_ns(const struct schedule *schedule, uint32_t slot)
{
	switch (schedule->filings[slot].where & WHERE_MASK) {
	case WHERE_WHEEL:
		return wheel_at_ns(&schedule->wheel, slot);
	case WHERE_RUN:
		return run_at_ns(&schedule->run, slot);
	case WHERE_HEAP:
		return heap_at_ns(&schedule->heap, slot);
	default:
		return UINT64_MAX;
	}
}

void schedule_remove(struct schedule *schedule, uint32_t slot)
{
	switch (schedule->filings[slot].where & WHERE_MASK) {
	case WHERE_WHEEL:
		wheel_remove(&schedule->wheel, slot);
		break;
	case WHERE_RUN:
		run_remove(&schedule->run, slot);
		break;
	case WHERE_HEAP:
		heap_remove(&schedule->heap, slot);
		break;
	default:
		break;
	}
}

void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns)
{
	uint32_t where = schedule->filings[slot].where & WHERE_MASK;
	struct timer_due due = { .at_ns = at_ns, .slot = slot };

	if (at_ns == UINT64_MAX) {
		schedule_remove(schedule, slot);
		return;
	}
	if (where == WHERE_WHEEL && wheel_move_within(&schedule->wheel, slot, at_ns))
		return;
	if (where != 0) {
		if (schedule_at_ns(schedule, slot) == at_ns)
			return;
		schedule_remove(schedule, slot);
	}
	if (wheel_covers(&schedule->wheel, at_ns))
		wheel_insert(&schedule->wheel, due);
	else
		heap_insert(&schedule->heap, due);
}

unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max)
{
	uint64_t run_ns = run_first_ns(&schedule->run);
	uint64_t heap_ns = heap_first_ns(&schedule->heap);

	if (run_ns == UINT64_MAX && heap_ns == UINT64_MAX)
		return wheel_doubt(&schedule->wheel, before_ns, slots, max);
	if (u64_min(run_ns, heap_ns) >= before_ns)
		return 0;
	slots[0] = run_ns <= heap_ns ? run_peek(&schedule->run, 0) : heap_peek(&schedule->heap);
	return 1;
}

/*
 * Prefetches what moving a chunk (up to 20 timers) touches: the timers' elements of `filings`, and
 * the next chunk. They are in no cache.
 */
CPU_FETCHES void schedule_fetch_chunk(const struct schedule *schedule, uint32_t chunk)
{
	uint32_t next = wheel_next_chunk(&schedule->wheel, chunk);
	unsigned count;
	const struct timer_due *dues = wheel_chunk_dues(&schedule->wheel, chunk, &count);

	for (unsigned i = 0; i < count; i++)
		__builtin_prefetch(&schedule->filings[dues[i].slot], 1);
	if (next != CHUNK_NONE)
		wheel_fetch_chunk(&schedule->wheel, next);
}

/*
 * Moves a chunk of up to 20 timers to lower levels of the wheel. Timers that are due within 65.5 us
 * go into the array `run`.
 */
static void schedule_file_chunk(struct schedule *schedule, uint32_t chunk)
{
	unsigned count;
	const struct timer_due *dues = wheel_chunk_dues(&schedule->wheel, chunk, &count);

	for (unsigned i = 0; i < count; i++) {
		if (wheel_covers(&schedule->wheel, dues[i].at_ns))
			wheel_insert(&schedule->wheel, dues[i]);
		else
			run_add(&schedule->run, dues[i]);
	}
	schedule->cascaded += count;
}

/*
 * Advances the wheel to the time `base_ns`, and empties the wheel's bucket for that time. Its
 * timers go to lower levels of the wheel, or into the sorted array `run` if they are due too soon
 * for the wheel. `run` must be empty.
 */
static void schedule_enter(struct schedule *schedule, uint64_t base_ns)
{
	uint32_t chunk = wheel_enter(&schedule->wheel, base_ns);

	if (chunk == CHUNK_NONE)
		return;
	schedule_fetch_chunk(schedule, chunk);
	while (chunk != CHUNK_NONE) {
		uint32_t next = wheel_next_chunk(&schedule->wheel, chunk);

		if (next != CHUNK_NONE)
			schedule_fetch_chunk(schedule, next);
		schedule_file_chunk(schedule, chunk);
		chunk = wheel_leave_chunk(&schedule->wheel, chunk);
	}
	run_sort(&schedule->run);
}

/*
 * Takes the earliest timer out of `run` or the heap, and returns its slot. Returns SLOT_NONE if no
 * timer there is due at `now_ns`.
 */
static uint32_t schedule_take_known(struct schedule *schedule, uint64_t now_ns)
{
	uint64_t run_ns = run_first_ns(&schedule->run);

	schedule->taken_ns = u64_min(run_ns, heap_first_ns(&schedule->heap));
	if (schedule->taken_ns > now_ns)
		return SLOT_NONE;
	return schedule->taken_ns == run_ns ? run_take(&schedule->run) : heap_take(&schedule->heap);
}

/*
 * Takes the earliest timer out of the wheel if it is due. The other two parts of the schedule, the
 * array `run` and the heap, must be empty. Not inlined, so that schedule_take() saves fewer
 * registers in each call.
 */
static __attribute__((noinline)) uint32_t schedule_take_later(struct schedule *schedule,
                                                              uint64_t now_ns, bool cheaply)
{
	while (run_empty(&schedule->run)) {
		struct wheel_first first = wheel_first(&schedule->wheel);
		/* If the wheel is empty, bound_ns is UINT64_MAX. */
		bool is_due = first.bound_ns <= now_ns && first.bound_ns != UINT64_MAX;

		if (is_due && first.slot != SLOT_NONE && (first.is_alone || first.is_of_many)) {
			/* Take this timer straight out of the wheel, without sorting its bucket. */
			wheel_remove(&schedule->wheel, first.slot);
			schedule->taken_ns = first.bound_ns;
			return first.slot;
		}
		if (first.is_of_many && cheaply)
			return SLOT_DEAR;
		/*
		 * If nothing is due, the wheel still advances to the present time. New timers then
		 * start on lower levels, and need fewer moves.
		 */
		schedule_enter(schedule, is_due ? first.bound_ns : now_ns);
		if (!is_due)
			return SLOT_NONE;
	}
	return schedule_take_known(schedule, now_ns);
}

uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply)
{
	if (run_empty(&schedule->run) && heap_empty(&schedule->heap))
		return schedule_take_later(schedule, now_ns, cheaply);
	return schedule_take_known(schedule, now_ns);
}

uint64_t schedule_next_ns(struct schedule *schedule)
{
	uint64_t next_ns = u64_min(run_first_ns(&schedule->run), heap_first_ns(&schedule->heap));

	return next_ns == UINT64_MAX ? wheel_bound_ns(&schedule->wheel) : next_ns;
}

void schedule_ahead(const struct schedule *schedule, uint64_t now_ns,
                    uint64_t ret_counts[AHEAD_RANGES])
{
	(void)memset(ret_counts, 0, AHEAD_RANGES * sizeof(*ret_counts));
	/*
	 * The sorted array `run` and the heap have only timers that are due within 65.5 us, so all
	 * of them belong to range 0. Removed timers that are still in `run` are counted too.
	 */
	ret_counts[0] = schedule->run.end - schedule->run.begin + schedule->heap.count;
	wheel_ahead(&schedule->wheel, now_ns, ret_counts);
}
