/* SPDX-License-Identifier: MIT */
/*
 * See wheel.h. The owner calls.
 *
 * A slot lies on the level of the highest digit in which its instant differs from the base, in the
 * bucket of that digit. Hence every slot of a level is earlier than every slot of a higher one, and
 * the first occupied bucket of the lowest occupied level holds the earliest. Moving the base keeps
 * that true but for the bucket that the base enters; its slots come out and are filed again, lower.
 *
 * Each bucket knows a lower bound of its instants, so the base goes straight to the next instant,
 * not to the bucket's edge: a lone distant timer costs one wake, not one per level.
 *
 * tests/unit/test_wheel.c holds it against a sorted array, at every level's edges up to 2^63.
 */
#include "wheel.h"

#include <stddef.h>

#include "check.h"

/* A bound that may be too low is made exact where that takes at most this many steps. */
#define WHEEL_RESCAN_MAX 64

void wheel_init(struct wheel *wheel, struct wheel_level *levels, struct timer_filing *filings)
{
	wheel->filings = filings;
	wheel->base_ns = 0;
	wheel->levels = levels;
}

static unsigned level_shift(unsigned level)
{
	return WHEEL_FINEST_SHIFT + level * WHEEL_DIGIT_BITS;
}

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

/* The level's first occupied bucket; it must have one. */
static uint32_t level_first(const struct wheel_level *level)
{
	unsigned word = bits_lowest(level->summary);

	return word * 64 + bits_lowest(level->bitmap[word]);
}

static bool bucket_empty(const struct wheel_level *level, uint32_t digit)
{
	return (level->bitmap[digit / 64] >> (digit % 64) & 1) == 0;
}

void wheel_insert(struct wheel *wheel, uint32_t slot)
{
	struct timer_filing *filing = &wheel->filings[slot];
	unsigned level_index = wheel_level_of(wheel, filing->at_ns);
	struct wheel_level *level = &wheel->levels[level_index];
	uint32_t digit = digit_of(filing->at_ns, level_index);
	struct wheel_bucket *bucket = &level->buckets[digit];

	check(filing->where == 0);
	if (bucket_empty(level, digit)) {
		*bucket = (struct wheel_bucket){ .bound_ns = UINT64_MAX, .first = SLOT_NONE };
		level_mark(level, digit);
	}
	filing->prev = SLOT_NONE;
	filing->next = bucket->first;
	filing->where = 1 + level_index * WHEEL_DIGITS + digit;
	if (bucket->first != SLOT_NONE)
		wheel->filings[bucket->first].prev = slot;
	bucket->first = slot;
	bucket->bound_ns = u64_min(bucket->bound_ns, filing->at_ns);
}

static struct wheel_bucket *wheel_bucket_at(struct wheel *wheel, uint32_t where)
{
	check(where > 0 && where <= WHEEL_LEVELS * WHEEL_DIGITS);
	return &wheel->levels[(where - 1) / WHEEL_DIGITS].buckets[(where - 1) % WHEEL_DIGITS];
}

void wheel_remove(struct wheel *wheel, uint32_t slot)
{
	struct timer_filing *filing = &wheel->filings[slot];
	struct wheel_bucket *bucket = wheel_bucket_at(wheel, filing->where);

	if (filing->next != SLOT_NONE)
		wheel->filings[filing->next].prev = filing->prev;
	if (filing->prev != SLOT_NONE)
		wheel->filings[filing->prev].next = filing->next;
	else
		bucket->first = filing->next;
	if (filing->at_ns == bucket->bound_ns)
		bucket->bound_old = 1;
	if (bucket->first == SLOT_NONE)
		level_unmark(&wheel->levels[(filing->where - 1) / WHEEL_DIGITS],
		             (filing->where - 1) % WHEEL_DIGITS);
	filing->where = 0;
}

bool wheel_move_within(struct wheel *wheel, uint32_t slot, uint64_t at_ns)
{
	struct timer_filing *filing = &wheel->filings[slot];
	struct wheel_bucket *bucket = wheel_bucket_at(wheel, filing->where);
	unsigned shift = level_shift((filing->where - 1) / WHEEL_DIGITS);

	if (at_ns >> shift != filing->at_ns >> shift)
		return false;
	if (filing->at_ns == bucket->bound_ns)
		bucket->bound_old = 1;
	filing->at_ns = at_ns;
	bucket->bound_ns = u64_min(bucket->bound_ns, at_ns);
	return true;
}

/* Make the bucket's bound exact, unless the bucket is long. */
static void wheel_rescan(const struct wheel *wheel, struct wheel_bucket *bucket)
{
	uint64_t bound_ns = UINT64_MAX;
	uint32_t slot = bucket->first;

	for (unsigned steps = 0; slot != SLOT_NONE; slot = wheel->filings[slot].next) {
		if (++steps > WHEEL_RESCAN_MAX)
			return;
		bound_ns = u64_min(bound_ns, wheel->filings[slot].at_ns);
	}
	bucket->bound_ns = bound_ns;
	bucket->bound_old = 0;
}

static struct wheel_level *wheel_lowest_level(struct wheel *wheel)
{
	for (unsigned i = 0; i < WHEEL_LEVELS; i++)
		if (wheel->levels[i].summary != 0)
			return &wheel->levels[i];
	return NULL;
}

uint64_t wheel_bound_ns(struct wheel *wheel)
{
	struct wheel_level *level = wheel_lowest_level(wheel);
	struct wheel_bucket *bucket;

	if (!level)
		return UINT64_MAX;
	bucket = &level->buckets[level_first(level)];
	if (bucket->bound_old)
		wheel_rescan(wheel, bucket);
	return bucket->bound_ns;
}

static void wheel_disown(struct wheel *wheel, uint32_t slot)
{
	for (; slot != SLOT_NONE; slot = wheel->filings[slot].next)
		wheel->filings[slot].where = 0;
}

uint32_t wheel_enter(struct wheel *wheel, uint64_t base_ns)
{
	struct wheel_level *level = wheel_lowest_level(wheel);
	uint32_t digit, slots;
	unsigned shift;

	if (base_ns <= wheel->base_ns)
		return SLOT_NONE;
	if (!level) {
		wheel->base_ns = base_ns;
		return SLOT_NONE;
	}
	digit = level_first(level);
	shift = level_shift((unsigned)(level - wheel->levels));
	check(base_ns <= level->buckets[digit].bound_ns);
	/* Only the first bucket can be entered without passing somebody's instant. */
	if (base_ns >> shift != level->buckets[digit].bound_ns >> shift) {
		wheel->base_ns = base_ns;
		return SLOT_NONE;
	}
	wheel->base_ns = base_ns;
	slots = level->buckets[digit].first;
	level_unmark(level, digit);
	wheel_disown(wheel, slots);
	return slots;
}
