/* SPDX-License-Identifier: MIT */
#include "hub_check.h"

#include "schedule/schedule.h"

#define HEAP_ARITY 4

static const struct wheel_chunk *slot_chunk(const struct schedule *schedule, uint32_t slot)
{
	uint32_t index = schedule->filings[slot].where & ~WHERE_MASK;

	return &schedule->wheel.chunks[index >> WHEEL_ENTRY_BITS];
}

static bool wheel_entry_names(const struct schedule *schedule, uint32_t slot, uint32_t index)
{
	uint32_t chunk = index >> WHEEL_ENTRY_BITS;
	uint32_t entry = index & ((1u << WHEEL_ENTRY_BITS) - 1);

	return chunk != CHUNK_NONE && chunk < schedule->wheel.chunks_used &&
	       entry < schedule->wheel.chunks[chunk].count &&
	       schedule->wheel.chunks[chunk].entries[entry].slot == slot;
}

/* A scheduled slot's `where` and the entry there name each other. */
static bool filing_names_entry(const struct schedule *schedule, uint32_t slots)
{
	const struct run *run = &schedule->run;
	const struct heap *heap = &schedule->heap;

	for (uint32_t slot = 0; slot < slots; slot++) {
		uint32_t where = schedule->filings[slot].where;
		uint32_t index = where & ~WHERE_MASK;
		bool names = where == 0;

		if ((where & WHERE_MASK) == WHERE_WHEEL)
			names = wheel_entry_names(schedule, slot, index);
		else if ((where & WHERE_MASK) == WHERE_RUN)
			names = index >= run->begin && index < run->end &&
			        run->entries[index].slot == slot;
		else if ((where & WHERE_MASK) == WHERE_HEAP)
			names = index < heap->count && heap->entries[index].slot == slot;
		if (!names)
			return false;
	}
	return true;
}

/* UINT32_MAX if the list of chunks does not end. */
static uint32_t bucket_count(const struct wheel *wheel, const struct wheel_bucket *bucket,
                             uint32_t *chunks)
{
	uint32_t count = 0;

	for (uint32_t chunk = bucket->first; chunk != CHUNK_NONE;
	     chunk = wheel->chunks[chunk].next) {
		if (chunk >= wheel->chunks_used || ++*chunks >= wheel->chunks_used)
			return UINT32_MAX;
		count += wheel->chunks[chunk].count;
	}
	return count;
}

typedef bool bucket_holds_fn(const struct wheel *wheel, unsigned level, uint32_t digit,
                             uint32_t counts[2]);

static bool each_bucket(const struct wheel *wheel, bucket_holds_fn *holds, uint32_t counts[2])
{
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		uint64_t words = wheel->levels[level].summary;

		for (; words != 0; words &= words - 1) {
			unsigned word = bits_lowest(words);
			uint64_t bits = wheel->levels[level].bitmap[word];

			for (; bits != 0; bits &= bits - 1)
				if (!holds(wheel, level, word * 64 + bits_lowest(bits), counts))
					return false;
		}
	}
	return true;
}

static bool count_bucket(const struct wheel *wheel, unsigned level, uint32_t digit,
                         uint32_t counts[2])
{
	uint32_t count = bucket_count(wheel, &wheel->levels[level].buckets[digit], &counts[1]);

	counts[0] += count;
	return count != UINT32_MAX;
}

/*
 * Wheel, run and heap each have as many entries as there are slots that say they are filed there.
 * So no entry lacks its slot.
 */
static bool entry_has_filing(const struct schedule *schedule, uint32_t slots)
{
	uint32_t filed[4] = { 0 }, in_run = 0, in_wheel[2] = { 0 };

	for (uint32_t slot = 0; slot < slots; slot++)
		filed[schedule->filings[slot].where >> 30]++;
	for (uint32_t i = schedule->run.begin; i < schedule->run.end; i++)
		in_run += schedule->run.entries[i].slot != SLOT_NONE;
	return each_bucket(&schedule->wheel, count_bucket, in_wheel) &&
	       in_wheel[0] == filed[WHERE_WHEEL >> 30] && in_run == filed[WHERE_RUN >> 30] &&
	       schedule->heap.count == filed[WHERE_HEAP >> 30];
}

static bool heap_is_ordered(const struct schedule *schedule, uint32_t slots)
{
	const struct timer_due *entries = schedule->heap.entries;

	(void)slots;
	for (uint32_t i = 1; i < schedule->heap.count; i++)
		if (entries[i].at_ns < entries[(i - 1) / HEAP_ARITY].at_ns)
			return false;
	return true;
}

static bool run_is_sorted(const struct schedule *schedule, uint32_t slots)
{
	const struct run *run = &schedule->run;

	if (run->begin > run->end || run->end > slots ||
	    (run->begin < run->end && run->entries[run->begin].slot == SLOT_NONE))
		return false;
	for (uint32_t i = run->begin + 1; i < run->end; i++)
		if (run->entries[i].at_ns < run->entries[i - 1].at_ns)
			return false;
	return true;
}

/* Nothing in the run and the heap is later than the finest bucket of the wheel's base. */
static bool run_and_heap_come_first(const struct schedule *schedule, uint32_t slots)
{
	(void)slots;
	for (uint32_t i = schedule->run.begin; i < schedule->run.end; i++)
		if (wheel_covers(&schedule->wheel, schedule->run.entries[i].at_ns))
			return false;
	for (uint32_t i = 0; i < schedule->heap.count; i++)
		if (wheel_covers(&schedule->wheel, schedule->heap.entries[i].at_ns))
			return false;
	return true;
}

static bool bucket_has_entries(const struct wheel *wheel, unsigned level, uint32_t digit,
                               uint32_t counts[2])
{
	(void)counts;
	return wheel->levels[level].buckets[digit].first != CHUNK_NONE;
}

static bool bitmap_says_occupied(const struct schedule *schedule, uint32_t slots)
{
	const struct wheel *wheel = &schedule->wheel;

	for (uint32_t slot = 0; slot < slots; slot++) {
		uint32_t bucket, digit;

		if ((schedule->filings[slot].where & WHERE_MASK) != WHERE_WHEEL)
			continue;
		bucket = slot_chunk(schedule, slot)->bucket;
		digit = bucket % WHEEL_DIGITS;
		if ((wheel->levels[bucket / WHEEL_DIGITS].bitmap[digit / 64] >> digit % 64 & 1) ==
		    0)
			return false;
	}
	for (unsigned level = 0; level < WHEEL_LEVELS; level++)
		for (unsigned word = 0; word < WHEEL_BITMAP_WORDS; word++)
			if ((wheel->levels[level].summary >> word & 1) !=
			    (wheel->levels[level].bitmap[word] != 0))
				return false;
	return each_bucket(wheel, bucket_has_entries, NULL);
}

/*
 * The instant belongs in the bucket `digit` of the level: this is its digit there, the base has
 * another one, and all higher digits are those of the base.
 */
static bool instant_is_of(const struct wheel *wheel, uint64_t at_ns, unsigned level, uint32_t digit)
{
	unsigned shift = WHEEL_FINEST_SHIFT + level * WHEEL_DIGIT_BITS;

	/* the highest level has no higher digits to compare */
	return wheel_covers(wheel, at_ns) && at_ns > wheel->base_ns &&
	       (level + 1 == WHEEL_LEVELS ||
	        at_ns >> (shift + WHEEL_DIGIT_BITS) ==
	                wheel->base_ns >> (shift + WHEEL_DIGIT_BITS)) &&
	       (at_ns >> shift) % WHEEL_DIGITS == digit &&
	       (wheel->base_ns >> shift) % WHEEL_DIGITS != digit;
}

static bool bucket_is_of_its_instants(const struct wheel *wheel, unsigned level, uint32_t digit,
                                      uint32_t counts[2])
{
	uint32_t chunk = wheel->levels[level].buckets[digit].first;

	(void)counts;
	for (; chunk != CHUNK_NONE; chunk = wheel->chunks[chunk].next)
		for (unsigned i = 0; i < wheel->chunks[chunk].count; i++)
			if (!instant_is_of(wheel, wheel->chunks[chunk].entries[i].at_ns, level,
			                   digit))
				return false;
	return true;
}

static bool bucket_holds_its_instants(const struct schedule *schedule, uint32_t slots)
{
	(void)slots;
	return each_bucket(&schedule->wheel, bucket_is_of_its_instants, NULL);
}

static bool bucket_bound_holds(const struct wheel *wheel, unsigned level, uint32_t digit,
                               uint32_t counts[2])
{
	const struct wheel_bucket *bucket = &wheel->levels[level].buckets[digit];
	bool found = bucket->bound_slot == SLOT_NONE;

	(void)counts;
	for (uint32_t chunk = bucket->first; chunk != CHUNK_NONE; chunk = wheel->chunks[chunk].next)
		for (unsigned i = 0; i < wheel->chunks[chunk].count; i++) {
			struct timer_due due = wheel->chunks[chunk].entries[i];

			if (due.at_ns < bucket->bound_ns)
				return false;
			found |= due.slot == bucket->bound_slot && due.at_ns == bucket->bound_ns;
		}
	return found;
}

/* Nothing in a bucket is earlier than its bound, at which the slot `bound_slot`, if any, is due. */
static bool bound_is_low(const struct schedule *schedule, uint32_t slots)
{
	(void)slots;
	return each_bucket(&schedule->wheel, bucket_bound_holds, NULL);
}

static uint32_t chunks_from(const struct wheel *wheel, uint32_t chunk)
{
	uint32_t count = 0;

	for (; chunk != CHUNK_NONE; chunk = wheel->chunks[chunk].next)
		count++;
	return count;
}

static bool bucket_chunks_hold(const struct wheel *wheel, unsigned level, uint32_t digit,
                               uint32_t counts[2])
{
	uint32_t first = wheel->levels[level].buckets[digit].first;

	(void)counts;
	for (uint32_t chunk = first; chunk != CHUNK_NONE; chunk = wheel->chunks[chunk].next)
		if (wheel->chunks[chunk].bucket != level * WHEEL_DIGITS + digit ||
		    wheel->chunks[chunk].count == 0 ||
		    (chunk != first && wheel->chunks[chunk].count != WHEEL_CHUNK_ENTRIES) ||
		    wheel->chunks[chunk].behind != chunks_from(wheel, chunk) - 1)
			return false;
	return true;
}

/*
 * All chunks of a bucket but the first are full. Each names its bucket, and how many chunks come
 * behind it. All other chunks are in the free list.
 */
static bool chunk_is_filled(const struct schedule *schedule, uint32_t slots)
{
	const struct wheel *wheel = &schedule->wheel;
	uint32_t counts[2] = { 0 }, free = 0;

	(void)slots;
	for (uint32_t chunk = wheel->free_chunk; chunk != CHUNK_NONE;
	     chunk = wheel->chunks[chunk].next)
		if (chunk >= wheel->chunks_used || ++free >= wheel->chunks_used)
			return false;
	return each_bucket(wheel, bucket_chunks_hold, NULL) &&
	       each_bucket(wheel, count_bucket, counts) &&
	       1 + counts[1] + free == wheel->chunks_used;
}

#define LINE(holds)                                                                                \
	{                                                                                          \
#holds, holds                                                                      \
	}

/* In this order: later checks walk lists that earlier ones have found whole. */
static const struct {
	const char *name;
	bool (*holds)(const struct schedule *schedule, uint32_t slots);
} lines[] = {
	LINE(filing_names_entry), LINE(bitmap_says_occupied),      LINE(entry_has_filing),
	LINE(chunk_is_filled),    LINE(bucket_holds_its_instants), LINE(bound_is_low),
	LINE(run_is_sorted),      LINE(heap_is_ordered),           LINE(run_and_heap_come_first),
};

const char *schedule_check(const struct schedule *schedule, uint32_t slots)
{
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!lines[i].holds(schedule, slots))
			return lines[i].name;
	return NULL;
}
