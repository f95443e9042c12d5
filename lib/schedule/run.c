/* SPDX-License-Identifier: MIT */
/*
 * Keeps the schedule entries that are due next in a sorted array (run.h). After run_sort() the
 * entries from `begin` to `end` are in order, and stay so. A removal does not close the gap,
 * because that would move all entries behind it. It writes SLOT_NONE there instead, and `begin`
 * moves on over such entries when it reaches them.
 */
#include "schedule/run.h"

#include "base/invariant.h"

#define RUN_DIGIT_BITS 8
#define RUN_DIGITS (1u << RUN_DIGIT_BITS)
_Static_assert(2 * RUN_DIGIT_BITS == RUN_TIME_BITS, "two digits sort a run");
/*
 * Up to so many entries are sorted by insertion, because that is faster for so few than counting
 * their digits.
 */
#ifndef RUN_INSERTION_MAX
#define RUN_INSERTION_MAX 24
#endif
/*
 * How many entries ahead run_sort() prefetches the memory in which it will record an entry's
 * position.
 */
#define RUN_AHEAD 16

void run_init(struct run *run, struct timer_due *entries, struct timer_due *spare,
              struct timer_filing *filings)
{
	*run = (struct run){ .entries = entries, .spare = spare, .filings = filings };
}

void run_add(struct run *run, struct timer_due due)
{
	invariant(run->begin == 0);
	run->entries[run->end++] = due;
}

static void run_sort_by_insertion(struct run *run)
{
	for (uint32_t i = 1; i < run->end; i++) {
		struct timer_due due = run->entries[i];
		uint32_t hole = i;

		for (; hole > 0 && run->entries[hole - 1].at_ns > due.at_ns; hole--)
			run->entries[hole] = run->entries[hole - 1];
		run->entries[hole] = due;
	}
}

/*
 * Sorts the entries by 8 bits of their times into the array `spare`, and then swaps the two arrays.
 * Entries that agree in these bits keep their order. So sorting first by the low bits and then by
 * the high bits sorts by both.
 */
static void run_sort_by_digit(struct run *run, unsigned shift)
{
	uint32_t places[RUN_DIGITS] = { 0 };
	uint32_t place = 0;
	struct timer_due *sorted = run->spare;

	for (uint32_t i = 0; i < run->end; i++)
		places[run->entries[i].at_ns >> shift & (RUN_DIGITS - 1)]++;
	for (uint32_t digit = 0; digit < RUN_DIGITS; digit++) {
		uint32_t count = places[digit];

		places[digit] = place;
		place += count;
	}
	for (uint32_t i = 0; i < run->end; i++)
		sorted[places[run->entries[i].at_ns >> shift & (RUN_DIGITS - 1)]++] =
			run->entries[i];
	run->spare = run->entries;
	run->entries = sorted;
}

void run_sort(struct run *run)
{
	if (run->end <= RUN_INSERTION_MAX) {
		run_sort_by_insertion(run);
	} else {
		run_sort_by_digit(run, 0);
		run_sort_by_digit(run, RUN_DIGIT_BITS);
	}
	for (uint32_t i = 0; i < run->end; i++) {
		if (i + RUN_AHEAD < run->end)
			__builtin_prefetch(&run->filings[run->entries[i + RUN_AHEAD].slot], 1);
		run->filings[run->entries[i].slot].where = WHERE_RUN | i;
	}
}

/*
 * Skips the removed entries at the beginning of the sorted array. If no entry is left, the array
 * begins at index 0 again.
 */
static void run_skip_removed(struct run *run)
{
	while (run->begin < run->end && run->entries[run->begin].slot == SLOT_NONE)
		run->begin++;
	if (run->begin == run->end)
		run->begin = run->end = 0;
}

/* Returns the index of a slot's entry in the sorted array run->entries. There must be one. */
static uint32_t run_index_of(const struct run *run, uint32_t slot)
{
	uint32_t where = run->filings[slot].where;
	uint32_t index = where & ~WHERE_MASK;

	invariant((where & WHERE_MASK) == WHERE_RUN && index >= run->begin && index < run->end);
	return index;
}

uint64_t run_at_ns(const struct run *run, uint32_t slot)
{
	return run->entries[run_index_of(run, slot)].at_ns;
}

void run_remove(struct run *run, uint32_t slot)
{
	run->entries[run_index_of(run, slot)].slot = SLOT_NONE;
	run->filings[slot].where = 0;
	run_skip_removed(run);
}

uint32_t run_take(struct run *run)
{
	uint32_t slot;

	invariant(!run_empty(run));
	slot = run->entries[run->begin++].slot;
	run->filings[slot].where = 0;
	run_skip_removed(run);
	return slot;
}
