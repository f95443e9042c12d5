/* SPDX-License-Identifier: MIT */
/*
 * Think of a time as a number of four digits, each of 12 bits, above 16 bits that the wheel
 * ignores. An entry's level is the highest digit in which its time differs from the base, the
 * wheel's own time, and the value of that digit is its bucket. So each entry of a level is due
 * before each entry of a higher level, and the earliest is in the first occupied bucket of the
 * lowest occupied level.
 *
 * When the base moves on, this order still holds, except for the bucket that the base enters: its
 * entries now differ from the base in a lower digit only, and go to a lower level or to the run.
 * Only the base of an empty wheel can move back, when the wall clock is set back.
 *
 * Each bucket knows a lower bound of its times, and the base moves straight to that bound rather
 * than to where the bucket begins. A single distant timer therefore costs one wake-up, and not one
 * for each level.
 *
 * If the earliest entry of a bucket is removed or moved, its time stays the lower bound until the
 * new earliest entry is known. wheel_doubt() sweeps such a bucket, but only once. Otherwise
 * wheel_rescan() searches the bucket, unless the bucket has so many entries that this would take
 * too long. For a long bucket that was swept before, wheel_doubt() therefore returns nothing.
 *
 * swept_ns says up to what time the buckets of a level were swept. If the clock was set back,
 * wheel_enter() sets swept_ns to 0, because the earlier buckets can then get entries again.
 *
 * A sweep (struct wheel_sweep) goes from a bucket's first chunk to the last, and in each chunk from
 * the last entry to the first. A removal fills the hole with the last entry of the first chunk.
 * Still no entry is missed: either this entry was visited before, or the hole is still to be
 * visited. The caller of wheel_doubt() removes or reinserts each entry that the sweep returns. So
 * at the end the bucket has only entries that were inserted since the sweep began, and the earliest
 * of these gives the new lower bound.
 */
#include "schedule/wheel.h"

#include <string.h>

#include "base/invariant.h"

/*
 * If a bucket has more chunks than this and loses its earliest entry, its new earliest time is not
 * searched for, because that would take too long.
 */
#ifndef WHEEL_RESCAN_CHUNKS_MAX
#define WHEEL_RESCAN_CHUNKS_MAX 8
#endif

void wheel_init(struct wheel *wheel, struct wheel_level *levels, struct wheel_chunk *chunks,
                uint32_t chunks_max, struct timer_filing *filings)
{
	*wheel = (struct wheel){
		.filings = filings,
		.levels = levels,
		.chunks = chunks,
		.chunks_max = chunks_max,
		.chunks_used = CHUNK_NONE + 1,
		.free_chunk = CHUNK_NONE,
	};
}

/* Returns how many bits of a time are below the 12 bits that choose a bucket on this level. */
static unsigned level_shift(unsigned level)
{
	return WHEEL_FINEST_SHIFT + level * WHEEL_DIGIT_BITS;
}

/*
 * Returns the level of the wheel to which an entry with this time belongs. wheel_covers() must be
 * true for the time.
 */
static unsigned wheel_level_of(const struct wheel *wheel, uint64_t at_ns)
{
	return (bits_highest(at_ns ^ wheel->base_ns) - WHEEL_FINEST_SHIFT) / WHEEL_DIGIT_BITS;
}

static uint32_t digit_of(uint64_t at_ns, unsigned level)
{
	return (uint32_t)(at_ns >> level_shift(level)) & (WHEEL_DIGITS - 1);
}

static void level_mark(struct wheel_level *level, uint32_t digit)
{
	level->bitmap[digit / 64] |= (uint64_t)1 << (digit % 64);
	level->summary |= (uint64_t)1 << (digit / 64);
}

static void level_unmark(struct wheel_level *level, uint32_t digit)
{
	level->bitmap[digit / 64] &= ~((uint64_t)1 << (digit % 64));
	if (level->bitmap[digit / 64] == 0)
		level->summary &= ~((uint64_t)1 << (digit / 64));
}

/* Returns the first bucket of a level that has any entries. There must be one. */
static uint32_t level_first(const struct wheel_level *level)
{
	unsigned word = bits_lowest(level->summary);

	return word * 64 + bits_lowest(level->bitmap[word]);
}

/* ---- chunks ---- */

static uint32_t wheel_take_chunk(struct wheel *wheel)
{
	uint32_t chunk = wheel->free_chunk;

	if (chunk == CHUNK_NONE) {
		invariant(wheel->chunks_used < wheel->chunks_max);
		return wheel->chunks_used++;
	}
	wheel->free_chunk = wheel->chunks[chunk].next;
	return chunk;
}

uint32_t wheel_leave_chunk(struct wheel *wheel, uint32_t chunk)
{
	uint32_t next = wheel->chunks[chunk].next;

	wheel->chunks[chunk].next = wheel->free_chunk;
	wheel->free_chunk = chunk;
	if (wheel->sweep.rest.first == chunk) {
		wheel->sweep.rest.first = next;
		wheel->sweep.entry = WHEEL_CHUNK_ENTRIES;
	}
	return next;
}

/* Stores an entry in a chunk, and records its position in the slot's element of `filings`. */
static void wheel_set_entry(struct wheel *wheel, uint32_t chunk, unsigned entry,
                            struct timer_due due)
{
	wheel->chunks[chunk].entries[entry] = due;
	wheel->filings[due.slot].where = WHERE_WHEEL | chunk << WHEEL_ENTRY_BITS | entry;
}

/*
 * Looks up where the wheel keeps the entry of the timer in `slot`. The entry is
 * wheel->chunks[returned value].entries[*ret_entry].
 */
static uint32_t wheel_find(const struct wheel *wheel, uint32_t slot, unsigned *ret_entry)
{
	uint32_t where = wheel->filings[slot].where;
	uint32_t chunk = (where & ~WHERE_MASK) >> WHEEL_ENTRY_BITS;

	invariant((where & WHERE_MASK) == WHERE_WHEEL && chunk < wheel->chunks_used);
	*ret_entry = where & ((1u << WHEEL_ENTRY_BITS) - 1);
	return chunk;
}

static struct wheel_bucket *wheel_bucket_of(const struct wheel *wheel, uint32_t chunk)
{
	uint32_t bucket = wheel->chunks[chunk].bucket;

	return &wheel->levels[bucket / WHEEL_DIGITS].buckets[bucket % WHEEL_DIGITS];
}

/* ---- insert, remove, move ---- */

static inline void bucket_lower_bound(struct wheel_bucket *bucket, struct timer_due due)
{
	if (due.at_ns > bucket->bound_ns)
		return;
	bucket->bound_ns = due.at_ns;
	bucket->bound_slot = due.slot;
}

/*
 * Keeps the lower bound of a bucket's times right after an entry was stored in the bucket. A sweep,
 * a walk over all entries of the bucket, has such a bound too.
 */
static inline void wheel_lower_bound(struct wheel *wheel, struct wheel_bucket *bucket,
                                     struct timer_due due)
{
	bucket_lower_bound(bucket, due);
	if (wheel->sweep.bucket == bucket)
		bucket_lower_bound(&wheel->sweep.rest, due);
}

/*
 * Must be called before the timer in `slot` is removed or moved. If it was the earliest of its
 * bucket, the earliest timer is unknown from now on.
 */
static inline void wheel_leave_bound(struct wheel *wheel, struct wheel_bucket *bucket,
                                     uint32_t slot)
{
	if (bucket->bound_slot == slot)
		bucket->bound_slot = SLOT_NONE;
	if (wheel->sweep.rest.bound_slot == slot)
		wheel->sweep.rest.bound_slot = SLOT_NONE;
}

/*
 * Must be called when a bucket has become empty. If a sweep (a walk over all entries of one bucket)
 * was under way in this bucket, ends the sweep.
 */
static void wheel_forget_sweep(struct wheel *wheel, const struct wheel_bucket *bucket)
{
	if (wheel->sweep.bucket == bucket)
		wheel->sweep.bucket = NULL;
}

void wheel_insert(struct wheel *wheel, struct timer_due due)
{
	unsigned level_index = wheel_level_of(wheel, due.at_ns);
	struct wheel_level *level = &wheel->levels[level_index];
	uint32_t digit = digit_of(due.at_ns, level_index);
	struct wheel_bucket *bucket = &level->buckets[digit];
	uint32_t chunk;

	invariant(level_index < WHEEL_LEVELS); /* so the wheel covers the time */
	chunk = bucket->first;
	if (chunk == CHUNK_NONE) {
		bucket->bound_ns = UINT64_MAX;
		level_mark(level, digit);
	}
	if (chunk == CHUNK_NONE || wheel->chunks[chunk].count == WHEEL_CHUNK_ENTRIES) {
		chunk = wheel_take_chunk(wheel);
		wheel->chunks[chunk].next = bucket->first;
		wheel->chunks[chunk].bucket = (uint16_t)(level_index * WHEEL_DIGITS + digit);
		wheel->chunks[chunk].count = 0;
		wheel->chunks[chunk].behind =
			bucket->first == CHUNK_NONE ? 0 : wheel->chunks[bucket->first].behind + 1;
		bucket->first = chunk;
	}
	wheel_set_entry(wheel, chunk, wheel->chunks[chunk].count++, due);
	wheel_lower_bound(wheel, bucket, due);
}

uint64_t wheel_at_ns(const struct wheel *wheel, uint32_t slot)
{
	unsigned entry;
	uint32_t chunk = wheel_find(wheel, slot, &entry);

	return wheel->chunks[chunk].entries[entry].at_ns;
}

void wheel_remove(struct wheel *wheel, uint32_t slot)
{
	unsigned entry;
	uint32_t chunk = wheel_find(wheel, slot, &entry);
	struct wheel_bucket *bucket = wheel_bucket_of(wheel, chunk);
	struct wheel_chunk *first = &wheel->chunks[bucket->first];
	struct timer_due last = first->entries[--first->count];

	wheel_leave_bound(wheel, bucket, slot);
	if (last.slot != slot)
		wheel_set_entry(wheel, chunk, entry, last);
	wheel->filings[slot].where = 0;
	if (first->count > 0) {
		/*
		 * The next removal will probably move the last entry of the bucket's first chunk
		 * into the gap, and write to the element of that entry's slot.
		 */
		__builtin_prefetch(&wheel->filings[first->entries[first->count - 1].slot], 1);
	} else {
		uint32_t number = first->bucket;

		bucket->first = wheel_leave_chunk(wheel, bucket->first);
		if (bucket->first == CHUNK_NONE) {
			level_unmark(&wheel->levels[number / WHEEL_DIGITS], number % WHEEL_DIGITS);
			wheel_forget_sweep(wheel, bucket);
		}
	}
}

bool wheel_move_within(struct wheel *wheel, uint32_t slot, uint64_t at_ns)
{
	unsigned entry;
	uint32_t chunk = wheel_find(wheel, slot, &entry);
	struct wheel_bucket *bucket = wheel_bucket_of(wheel, chunk);
	struct timer_due *due = &wheel->chunks[chunk].entries[entry];
	unsigned shift = level_shift(wheel->chunks[chunk].bucket / WHEEL_DIGITS);

	if (at_ns >> shift != due->at_ns >> shift)
		return false;
	wheel_leave_bound(wheel, bucket, slot);
	due->at_ns = at_ns;
	wheel_lower_bound(wheel, bucket, *due);
	return true;
}

/* ---- time ---- */

/* Tells whether a bucket has so many chunks that to read all of them would take too long. */
static inline bool wheel_bucket_is_long(const struct wheel *wheel,
                                        const struct wheel_bucket *bucket)
{
	return wheel->chunks[bucket->first].behind >= WHEEL_RESCAN_CHUNKS_MAX;
}

/*
 * Finds a bucket's new earliest time, if the entry that had the old one was removed or moved. Does
 * nothing if the bucket has so many entries that the search would take too long.
 */
static void wheel_rescan(const struct wheel *wheel, struct wheel_bucket *bucket)
{
	uint32_t chunk = bucket->first;

	if (bucket->bound_slot != SLOT_NONE || wheel_bucket_is_long(wheel, bucket))
		return;
	bucket->bound_ns = UINT64_MAX;
	for (; chunk != CHUNK_NONE; chunk = wheel->chunks[chunk].next)
		for (unsigned i = 0; i < wheel->chunks[chunk].count; i++)
			bucket_lower_bound(bucket, wheel->chunks[chunk].entries[i]);
}

/* Returns the lowest level that has any entries, or NULL if the wheel is empty. */
static struct wheel_level *wheel_lowest_level(const struct wheel *wheel)
{
	for (unsigned i = 0; i < WHEEL_LEVELS; i++)
		if (wheel->levels[i].summary != 0)
			return &wheel->levels[i];
	return NULL;
}

/* Returns the bucket that has the earliest entry, or NULL if the wheel is empty. */
static inline struct wheel_bucket *wheel_first_bucket(const struct wheel *wheel)
{
	struct wheel_level *level = wheel_lowest_level(wheel);

	return level ? &level->buckets[level_first(level)] : NULL;
}

uint64_t wheel_bound_ns(const struct wheel *wheel)
{
	struct wheel_bucket *bucket = wheel_first_bucket(wheel);

	if (!bucket)
		return UINT64_MAX;
	wheel_rescan(wheel, bucket);
	return bucket->bound_ns;
}

struct wheel_first wheel_first(const struct wheel *wheel)
{
	struct wheel_bucket *bucket = wheel_first_bucket(wheel);
	const struct wheel_chunk *chunk;

	if (!bucket)
		return (struct wheel_first){ .bound_ns = UINT64_MAX, .slot = SLOT_NONE };
	wheel_rescan(wheel, bucket);
	chunk = &wheel->chunks[bucket->first];
	return (struct wheel_first){
		.bound_ns = bucket->bound_ns,
		.slot = bucket->bound_slot,
		.is_alone = chunk->count == 1 && chunk->next == CHUNK_NONE,
		.is_of_many = wheel_bucket_is_long(wheel, bucket),
	};
}

uint32_t wheel_peek(const struct wheel *wheel)
{
	const struct wheel_bucket *bucket = wheel_first_bucket(wheel);

	if (!bucket)
		return SLOT_NONE;
	__builtin_prefetch(&wheel->chunks[bucket->first], 1);
	if (bucket->bound_slot != SLOT_NONE)
		__builtin_prefetch(&wheel->filings[bucket->bound_slot], 1);
	return bucket->bound_slot;
}

/*
 * Adds the timers of a bucket to `counts`, by how soon after `now_ns` they are due. A bucket can
 * have very many, so this is an estimate: reads only the first chunk, up to 20 timers, and assumes
 * that the others are like them.
 */
static void wheel_count_bucket(const struct wheel *wheel, const struct wheel_bucket *bucket,
                               uint64_t now_ns, uint64_t *counts)
{
	const struct wheel_chunk *chunk = &wheel->chunks[bucket->first];
	uint32_t all = chunk->count + chunk->behind * WHEEL_CHUNK_ENTRIES;

	invariant(chunk->count > 0);
	for (uint32_t i = 0; i < chunk->count; i++)
		counts[ahead_range(now_ns, chunk->entries[i].at_ns)] +=
			all / chunk->count + (i < all % chunk->count);
}

void wheel_ahead(const struct wheel *wheel, uint64_t now_ns, uint64_t *counts)
{
	for (unsigned i = 0; i < WHEEL_LEVELS; i++) {
		const struct wheel_level *level = &wheel->levels[i];

		for (uint32_t word = 0; word < WHEEL_BITMAP_WORDS; word++)
			for (uint64_t left = level->bitmap[word]; left != 0; left &= left - 1)
				wheel_count_bucket(wheel,
				                   &level->buckets[word * 64 + bits_lowest(left)],
				                   now_ns, counts);
	}
}

/* ---- sweeping ---- */

/*
 * Begins or continues a sweep, which is a walk over all entries of this bucket. Stores the slots of
 * the next entries, at most `max`, and returns how many it has stored.
 */
static unsigned wheel_sweep(struct wheel *wheel, struct wheel_bucket *bucket, uint32_t *slots,
                            unsigned max)
{
	struct wheel_sweep *sweep = &wheel->sweep;
	unsigned count = 0;

	if (sweep->bucket != bucket)
		*sweep = (struct wheel_sweep){
			.bucket = bucket,
			.rest = { .first = bucket->first,
			          .bound_ns = UINT64_MAX,
			          .bound_slot = SLOT_NONE },
			.entry = WHEEL_CHUNK_ENTRIES,
		};
	while (count < max && sweep->rest.first != CHUNK_NONE) {
		const struct wheel_chunk *chunk = &wheel->chunks[sweep->rest.first];

		if (sweep->entry > chunk->count)
			sweep->entry = chunk->count;
		while (count < max && sweep->entry > 0)
			slots[count++] = chunk->entries[--sweep->entry].slot;
		if (sweep->entry > 0)
			break;
		sweep->rest.first = chunk->next;
		sweep->entry = WHEEL_CHUNK_ENTRIES;
		if (chunk->next != CHUNK_NONE)
			wheel_fetch_chunk(wheel, chunk->next);
	}
	return count;
}

/*
 * Ends a walk over all entries of a bucket. The earliest time that was inserted during the walk
 * becomes the bucket's lower bound.
 */
static void wheel_end_sweep(struct wheel *wheel, unsigned level)
{
	struct wheel_bucket *bucket = wheel->sweep.bucket;

	bucket->bound_ns = wheel->sweep.rest.bound_ns;
	bucket->bound_slot = wheel->sweep.rest.bound_slot;
	wheel->swept_ns[level] = bucket->bound_ns | (((uint64_t)1 << level_shift(level)) - 1);
	wheel->sweep.bucket = NULL;
}

unsigned wheel_doubt(struct wheel *wheel, uint64_t before_ns, uint32_t *slots, unsigned max)
{
	struct wheel_level *level = wheel_lowest_level(wheel);
	struct wheel_bucket *bucket;
	unsigned level_index, count;

	if (!level)
		return 0;
	bucket = &level->buckets[level_first(level)];
	level_index = (unsigned)(level - wheel->levels);
	if (bucket->bound_slot == SLOT_NONE && bucket->bound_ns < before_ns &&
	    bucket->bound_ns > wheel->swept_ns[level_index]) {
		count = wheel_sweep(wheel, bucket, slots, max);
		if (count > 0)
			return count;
		wheel_end_sweep(wheel, level_index);
	}
	wheel_rescan(wheel, bucket);
	if (bucket->bound_ns >= before_ns || bucket->bound_slot == SLOT_NONE)
		return 0;
	slots[0] = bucket->bound_slot;
	return 1;
}

uint32_t wheel_enter(struct wheel *wheel, uint64_t base_ns)
{
	struct wheel_level *level = wheel_lowest_level(wheel);
	struct wheel_bucket *bucket;
	uint32_t digit, chunk;
	unsigned shift;

	if (base_ns <= wheel->base_ns && level)
		return CHUNK_NONE;
	if (base_ns < wheel->base_ns)
		(void)memset(wheel->swept_ns, 0, sizeof(wheel->swept_ns));
	wheel->base_ns = base_ns;
	if (!level)
		return CHUNK_NONE;
	digit = level_first(level);
	bucket = &level->buckets[digit];
	shift = level_shift((unsigned)(level - wheel->levels));
	invariant(base_ns <= bucket->bound_ns);
	if (base_ns >> shift != bucket->bound_ns >> shift)
		return CHUNK_NONE; /* base_ns is before the first bucket that has any entries */
	chunk = bucket->first;
	bucket->first = CHUNK_NONE;
	level_unmark(level, digit);
	wheel_forget_sweep(wheel, bucket);
	if (level->summary != 0) /* the bucket that will probably be entered next */
		wheel_fetch_chunk(wheel, level->buckets[level_first(level)].first);
	return chunk;
}
