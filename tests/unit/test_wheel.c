/* SPDX-License-Identifier: MIT */
/*
 * Compares the timer wheel, in virtual time, with a list of instants. The tests insert, remove and
 * move slots, and move the clock into buckets. After each of these steps, every slot must be in the
 * right bucket. The digits of a slot's instant determine the slot's bucket. The tests put the clock
 * at the edges of every level of the wheel, and at values up to 2^62.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/wheel.h"

#define SLOTS 200
#define ABSENT UINT64_MAX
#define EXACT_UP_TO 105 /* if a bucket has more than 105 slots, its bound may be too early */

struct bench {
	struct wheel wheel;
	struct wheel_level *levels;
	struct wheel_chunk *chunks; /* array of exactly as many chunks as the wheel asks for */
	struct timer_filing filings[SLOTS];
	uint64_t at_ns[SLOTS]; /* by slot: its instant if it is in the wheel, else ABSENT */
};

static struct bench *bench_new(void)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	size_t chunks_bytes = wheel_chunks_for(SLOTS) * sizeof(*bench->chunks);

	expect(bench);
	bench->levels = calloc(WHEEL_LEVELS, sizeof(*bench->levels));
	bench->chunks = aligned_alloc(CACHE_LINE_BYTES, chunks_bytes);
	expect(bench->levels && bench->chunks);
	memset(bench->chunks, 0, chunks_bytes);
	memset(bench->at_ns, 0xff, sizeof(bench->at_ns));
	wheel_init(&bench->wheel, bench->levels, bench->chunks, wheel_chunks_for(SLOTS),
	           bench->filings);
	return bench;
}

static void bench_free(struct bench *bench)
{
	free(bench->levels);
	free(bench->chunks);
	free(bench);
}

/*
 * Returns a digit of an instant. In the wheel, a 64-bit instant consists of 16 low bits and four
 * digits of 12 bits.
 */
static uint32_t slow_digit(uint64_t at_ns, unsigned level)
{
	at_ns /= 65536;
	while (level-- > 0)
		at_ns /= 4096;
	return (uint32_t)(at_ns % 4096);
}

#define NO_BUCKET UINT32_MAX

/*
 * Returns the bucket of an instant. The highest digit in which the instant differs from the base
 * gives the bucket's level and number.
 */
static uint32_t slow_bucket(uint64_t base_ns, uint64_t at_ns)
{
	for (unsigned level = 4; level-- > 0;)
		if (slow_digit(at_ns, level) != slow_digit(base_ns, level))
			return level * 4096 + slow_digit(at_ns, level);
	return NO_BUCKET;
}

static uint32_t chunk_of(const struct bench *bench, uint32_t slot)
{
	expect_eq(bench->filings[slot].where & WHERE_MASK, WHERE_WHEEL);
	return (bench->filings[slot].where & ~WHERE_MASK) / 32;
}

static uint32_t bucket_of(const struct bench *bench, uint32_t slot)
{
	return bench->at_ns[slot] == ABSENT ? NO_BUCKET
	                                    : bench->chunks[chunk_of(bench, slot)].bucket;
}

static void bench_verify_slots(const struct bench *bench)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		const struct wheel_chunk *chunk;
		uint32_t entry = bench->filings[slot].where % 32;

		if (bench->at_ns[slot] == ABSENT) {
			expect_eq(bench->filings[slot].where, 0);
			continue;
		}
		chunk = &bench->chunks[chunk_of(bench, slot)];
		expect_lt(entry, chunk->count);
		expect_eq(chunk->entries[entry].slot, slot);
		expect_eq(chunk->entries[entry].at_ns, bench->at_ns[slot]);
		expect_eq(wheel_at_ns(&bench->wheel, slot), bench->at_ns[slot]);
		expect_eq(chunk->bucket, slow_bucket(bench->wheel.base_ns, bench->at_ns[slot]));
	}
}

/*
 * Returns the number of slots in a bucket. Only the first chunk of a bucket may be partly filled,
 * and no chunk may hold more than its size.
 */
static uint32_t bucket_count(const struct bench *bench, uint32_t bucket)
{
	uint32_t chunk = bench->levels[bucket / 4096].buckets[bucket % 4096].first;
	uint32_t count = 0;

	for (bool first = true; chunk != CHUNK_NONE; chunk = bench->chunks[chunk].next) {
		expect_eq(bench->chunks[chunk].bucket, bucket);
		expect_le(first ? 1 : WHEEL_CHUNK_ENTRIES, bench->chunks[chunk].count);
		expect_le(bench->chunks[chunk].count, WHEEL_CHUNK_ENTRIES);
		count += bench->chunks[chunk].count;
		expect_le(count, SLOTS);
		first = false;
	}
	return count;
}

/*
 * Checks that the bitmaps have a bit for exactly the buckets with a slot, and that the buckets hold
 * all slots.
 */
static void bench_verify_buckets(const struct bench *bench)
{
	static uint32_t want[WHEEL_LEVELS * WHEEL_DIGITS];

	memset(want, 0, sizeof(want));
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		if (bench->at_ns[slot] != ABSENT)
			want[bucket_of(bench, slot)]++;
	for (uint32_t bucket = 0; bucket < WHEEL_LEVELS * WHEEL_DIGITS; bucket++) {
		const struct wheel_level *level = &bench->levels[bucket / 4096];
		uint32_t digit = bucket % 4096;

		expect_eq(level->bitmap[digit / 64] >> (digit % 64) & 1, want[bucket] > 0);
		expect_eq(bucket_count(bench, bucket), want[bucket]);
		if (digit % 64 == 0)
			expect_eq(level->summary >> (digit / 64) & 1,
			          level->bitmap[digit / 64] != 0);
	}
	expect_le(bench->wheel.chunks_used, wheel_chunks_for(SLOTS));
}

/*
 * Checks that the wheel's bound is never later than the instant of the earliest slot. If the bucket
 * of this slot has at most EXACT_UP_TO slots, the bound must equal the instant. The slot that
 * wheel_first() returns must be in the earliest bucket.
 */
static void bench_verify_bound(struct bench *bench)
{
	struct wheel_first told = wheel_first(&bench->wheel);
	uint64_t bound_ns = wheel_bound_ns(&bench->wheel);
	uint32_t first = SLOT_NONE;
	unsigned beside = 0;

	expect_eq(told.bound_ns, bound_ns);

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		if (bench->at_ns[slot] != ABSENT &&
		    (first == SLOT_NONE || bench->at_ns[slot] < bench->at_ns[first]))
			first = slot;
	if (first == SLOT_NONE) {
		expect_eq(bound_ns, UINT64_MAX);
		expect_eq(told.slot, SLOT_NONE);
		return;
	}
	expect_le(bound_ns, bench->at_ns[first]);
	expect_lt(bench->wheel.base_ns, bound_ns);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		beside += bucket_of(bench, slot) == bucket_of(bench, first);
	if (beside <= EXACT_UP_TO)
		expect_eq(bound_ns, bench->at_ns[first]);
	expect_eq(told.is_alone, beside == 1);
	expect(!told.is_of_many || beside > EXACT_UP_TO);
	if (told.slot == SLOT_NONE)
		expect(told.is_of_many);
	else
		expect_eq(bench->at_ns[told.slot], bound_ns);
}

static void bench_insert(struct bench *bench, uint32_t slot, uint64_t at_ns)
{
	bool covered = slow_bucket(bench->wheel.base_ns, at_ns) != NO_BUCKET &&
	               at_ns > bench->wheel.base_ns;

	expect_eq(wheel_covers(&bench->wheel, at_ns), covered);
	if (!covered)
		return;
	wheel_insert(&bench->wheel, (struct timer_due){ .at_ns = at_ns, .slot = slot });
	bench->at_ns[slot] = at_ns;
}

/*
 * Inserts the slots of a chunk again. Each slot must have been in the wheel, under the instant of
 * its entry.
 */
static void bench_file_chunk(struct bench *bench, const struct wheel_chunk *chunk)
{
	for (unsigned i = 0; i < chunk->count; i++) {
		struct timer_due due = chunk->entries[i];

		expect_lt(due.slot, SLOTS);
		expect_eq(due.at_ns, bench->at_ns[due.slot]);
		bench->at_ns[due.slot] = ABSENT;
		bench->filings[due.slot].where = 0;
		/* The wheel takes only the slots that are outside the base's own bucket. */
		bench_insert(bench, due.slot, due.at_ns);
	}
}

/* Enters a bucket, and inserts again the slots that come out of the bucket. */
static void bench_enter(struct bench *bench, uint64_t base_ns)
{
	uint32_t chunk = wheel_enter(&bench->wheel, base_ns);

	expect_eq(bench->wheel.base_ns, base_ns);
	while (chunk != CHUNK_NONE) {
		bench_file_chunk(bench, &bench->chunks[chunk]);
		chunk = wheel_leave_chunk(&bench->wheel, chunk);
	}
}

static uint64_t bench_instant_ns(struct bench *bench, struct dice *dice)
{
	uint64_t base_ns = bench->wheel.base_ns;

	switch (dice_below(dice, 5)) {
	case 0:
		return dice_boundary(dice);
	case 1: /* an instant near the instant of another slot, or equal to it */
		base_ns = bench->at_ns[dice_below(dice, SLOTS)];
		return base_ns < UINT64_MAX - 2 ? base_ns + dice_below(dice, 3) : 0;
	case 2: /* an instant near the end of the base's bucket on some level */
		return (base_ns | ((UINT64_C(1) << (16 + 12 * dice_below(dice, 4))) - 1)) +
		       dice_below(dice, 3);
	default:
		return base_ns + dice_magnitude(dice, 62);
	}
}

static void bench_move(struct bench *bench, uint32_t slot, uint64_t at_ns)
{
	bool within = slow_bucket(bench->wheel.base_ns, at_ns) == bucket_of(bench, slot) &&
	              at_ns > bench->wheel.base_ns;

	expect_eq(wheel_move_within(&bench->wheel, slot, at_ns), within);
	if (within)
		bench->at_ns[slot] = at_ns;
}

/*
 * Inserts a slot again or removes the slot, as the owner does. With a probability of 1 / `stay`,
 * the slot stays in the wheel, at its instant or a later instant.
 */
static void bench_refile(struct bench *bench, struct dice *dice, uint32_t slot, unsigned stay)
{
	uint64_t at_ns = bench->at_ns[slot];
	bool stays;

	expect(at_ns != ABSENT);
	if (dice_one_in(dice, 2))
		at_ns += dice_magnitude(dice, 42);
	stays = dice_one_in(dice, stay);
	if (stays && slow_bucket(bench->wheel.base_ns, at_ns) == bucket_of(bench, slot)) {
		bench_move(bench, slot, at_ns);
		return;
	}
	wheel_remove(&bench->wheel, slot);
	bench->at_ns[slot] = ABSENT;
	if (stays)
		bench_insert(bench, slot, at_ns);
}

/*
 * Inserts again, or removes, each slot that wheel_doubt() gives out. Returns the number of slots
 * that wheel_doubt() gave out.
 */
static unsigned bench_doubt(struct bench *bench, struct dice *dice, uint64_t before_ns,
                            uint32_t *slots, unsigned stay)
{
	unsigned max = 1 + (unsigned)dice_below(dice, 40);
	unsigned count = wheel_doubt(&bench->wheel, before_ns, slots, max);

	expect_le(count, max);
	for (unsigned i = 0; i < count; i++)
		bench_refile(bench, dice, slots[i], stay);
	return count;
}

static void bench_step(struct bench *bench, struct dice *dice, uint32_t slots)
{
	uint32_t slot = (uint32_t)dice_below(dice, slots);
	uint64_t bound_ns = wheel_bound_ns(&bench->wheel);

	if (dice_one_in(dice, 6) && bound_ns != UINT64_MAX) {
		uint64_t base_ns = bench->wheel.base_ns;

		bench_enter(bench, dice_one_in(dice, 2)
		                           ? bound_ns
		                           : base_ns + dice_below(dice, bound_ns - base_ns) + 1);
	} else if (dice_one_in(dice, 6)) {
		uint32_t doubtful[SLOTS];

		(void)bench_doubt(bench, dice, bound_ns + dice_magnitude(dice, 40), doubtful, 1);
	} else if (bench->at_ns[slot] == ABSENT) {
		bench_insert(bench, slot, bench_instant_ns(bench, dice));
	} else if (dice_one_in(dice, 3)) {
		wheel_remove(&bench->wheel, slot);
		bench->at_ns[slot] = ABSENT;
	} else if (dice_one_in(dice, 2)) {
		bench_move(bench, slot, bench->at_ns[slot] + dice_magnitude(dice, 40));
	} else {
		bench_move(bench, slot, bench->at_ns[slot] - dice_magnitude(dice, 30));
	}
}

START_TEST(random_operations_keep_every_slot_where_it_belongs)
{
	unsigned rounds = scaled(150);

	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(round);
		struct bench *bench = bench_new();
		uint32_t slots = 1 + (uint32_t)dice_below(&dice, SLOTS);

		(void)wheel_enter(&bench->wheel, dice_boundary(&dice));
		for (unsigned step = 0; step < 600; step++) {
			expect_context("round, step", round, step);
			bench_step(bench, &dice, slots);
			bench_verify_bound(bench);
			if (step % 8 == 0) {
				bench_verify_slots(bench);
				if (step % 64 == 0)
					bench_verify_buckets(bench);
			}
		}
		bench_free(bench);
	}
}
END_TEST

/*
 * If a bucket is long, the wheel does not compute the bucket's bound again. The bound may then be
 * early, but never late.
 */
START_TEST(bound_of_a_long_bucket_is_never_late)
{
	struct dice dice = dice_new(1000);
	struct bench *bench = bench_new();

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		bench_insert(bench, slot, (UINT64_C(5) << 40) + dice_below(&dice, 1 << 20));
	for (unsigned step = 0; step < 3000; step++) {
		uint32_t slot = (uint32_t)dice_below(&dice, SLOTS);

		if (bench->at_ns[slot] == ABSENT) {
			bench_insert(bench, slot, (UINT64_C(5) << 40) + dice_below(&dice, 1 << 20));
		} else if (dice_one_in(&dice, 2)) {
			wheel_remove(&bench->wheel, slot);
			bench->at_ns[slot] = ABSENT;
		} else {
			bench_move(bench, slot, (UINT64_C(5) << 40) + dice_below(&dice, 1 << 20));
		}
		bench_verify_bound(bench);
	}
	bench_verify_slots(bench);
	bench_verify_buckets(bench);
	bench_free(bench);
}
END_TEST

/* Puts all slots into one bucket, removes the first slot, and returns the bucket. */
#define SWEPT_NS (UINT64_C(5) << 40)
#define SWEPT_WIDTH (UINT64_C(1) << 40)

static struct wheel_bucket *bench_fill_bucket(struct bench *bench, struct dice *dice)
{
	struct wheel_bucket *bucket = &bench->levels[2].buckets[5];
	uint32_t first;

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		bench_insert(bench, slot, SWEPT_NS + dice_below(dice, SWEPT_WIDTH));
	first = bucket->bound_slot;
	wheel_remove(&bench->wheel, first);
	bench->at_ns[first] = ABSENT;
	return bucket;
}

/*
 * Inserts, removes or moves a slot, as the owner may between two portions of a sweep (the scan of a
 * bucket).
 */
static uint32_t bench_disturb(struct bench *bench, struct dice *dice)
{
	uint32_t slot = (uint32_t)dice_below(dice, SLOTS);
	uint64_t at_ns = SWEPT_NS + dice_below(dice, SWEPT_WIDTH);

	if (bench->at_ns[slot] != ABSENT && dice_one_in(dice, 2)) {
		bench_move(bench, slot, at_ns);
		return slot;
	}
	if (bench->at_ns[slot] != ABSENT)
		wheel_remove(&bench->wheel, slot);
	bench->at_ns[slot] = ABSENT;
	if (dice_one_in(dice, 2))
		bench_insert(bench, slot, at_ns);
	return slot;
}

static void bench_sweep(struct bench *bench, struct dice *dice, unsigned disturbances,
                        unsigned stay)
{
	struct wheel_bucket *bucket = bench_fill_bucket(bench, dice);
	/* by slot: true if the slot is unchanged since the sweep began, and was not given out */
	bool waits[SLOTS];
	uint32_t slots[SLOTS];

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		waits[slot] = bench->at_ns[slot] != ABSENT;
	do {
		/*
		 * If the wheel knows the first slot of the bucket, wheel_doubt() returns only that
		 * slot.
		 */
		uint32_t first = bucket->bound_slot;
		unsigned count;

		if (first != SLOT_NONE) {
			wheel_remove(&bench->wheel, first);
			bench->at_ns[first] = ABSENT;
			waits[first] = false;
		}
		count = bench_doubt(bench, dice, SWEPT_NS + SWEPT_WIDTH, slots, stay);
		for (unsigned i = 0; i < count; i++)
			waits[slots[i]] = false;
		bench_verify_bound(bench);
		for (unsigned i = 0; i < disturbances; i++)
			waits[bench_disturb(bench, dice)] = false;
		bench_verify_bound(bench);
	} while (bench->wheel.sweep.bucket == bucket);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		expect(!waits[slot]);
	bench_verify_slots(bench);
	bench_verify_buckets(bench);
}

START_TEST(sweep_passes_every_slot_of_a_bucket_whatever_happens_meanwhile)
{
	unsigned rounds = scaled(300);

	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(2000 + round);
		struct bench *bench = bench_new();

		expect_context("round", round, 0);
		bench_sweep(bench, &dice, round % 4, 1 + round / 4 % 4 * 8);
		bench_free(bench);
	}
}
END_TEST

/*
 * A sweep (the scan of a whole bucket) makes the bound of a long bucket exact. If the first slot of
 * the bucket leaves the wheel after the sweep, the wheel does not search the bucket again.
 */
START_TEST(sweep_tells_the_first_of_a_long_bucket_once)
{
	struct dice dice = dice_new(3000);
	struct bench *bench = bench_new();
	struct wheel_bucket *bucket = bench_fill_bucket(bench, &dice);
	uint64_t first_ns = ABSENT, bound_ns;
	uint32_t slots[SLOTS], first;
	unsigned count;

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		first_ns = u64_min(first_ns, bench->at_ns[slot]);
	expect_lt(wheel_bound_ns(&bench->wheel), first_ns);
	do {
		count = wheel_doubt(&bench->wheel, first_ns, slots, SLOTS);
		for (unsigned i = 0; i < count; i++)
			bench_move(bench, slots[i], bench->at_ns[slots[i]]);
	} while (count > 0);
	bound_ns = wheel_bound_ns(&bench->wheel);
	expect_eq(bound_ns, first_ns);
	expect_eq(bench->at_ns[bucket->bound_slot], first_ns);
	first = bucket->bound_slot;
	wheel_remove(&bench->wheel, first);
	bench->at_ns[first] = ABSENT;
	expect_eq(wheel_doubt(&bench->wheel, UINT64_MAX, slots, SLOTS), 0);
	expect_eq(wheel_bound_ns(&bench->wheel), first_ns);
	/* If the clock goes back, the same bucket is swept again. */
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (bench->at_ns[slot] != ABSENT)
			wheel_remove(&bench->wheel, slot);
		bench->at_ns[slot] = ABSENT;
	}
	expect_eq(wheel_enter(&bench->wheel, 1), CHUNK_NONE);
	expect_eq(wheel_enter(&bench->wheel, 0), CHUNK_NONE);
	(void)bench_fill_bucket(bench, &dice);
	expect_lt(0, wheel_doubt(&bench->wheel, UINT64_MAX, slots, SLOTS));
	bench_free(bench);
}
END_TEST

/*
 * The base of the wheel enters a bucket during the bucket's sweep. If the bucket is filled again
 * later, a new sweep begins.
 */
START_TEST(sweep_ends_where_its_bucket_is_entered)
{
	struct dice dice = dice_new(3001);
	struct bench *bench = bench_new();
	uint64_t lap_ns = UINT64_C(1) << 52;
	uint32_t slots[SLOTS];

	(void)bench_fill_bucket(bench, &dice);
	expect_lt(0, bench_doubt(bench, &dice, UINT64_MAX, slots, 1));
	bench_enter(bench, wheel_bound_ns(&bench->wheel));
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (bench->at_ns[slot] != ABSENT)
			wheel_remove(&bench->wheel, slot);
		bench->at_ns[slot] = ABSENT;
	}
	bench_enter(bench, lap_ns);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		bench_insert(bench, slot, lap_ns + SWEPT_NS + slot);
	wheel_remove(&bench->wheel, 0);
	bench->at_ns[0] = ABSENT;
	expect_lt(0, wheel_doubt(&bench->wheel, UINT64_MAX, slots, SLOTS));
	bench_verify_bound(bench);
	bench_free(bench);
}
END_TEST

/*
 * The wheel's chunks suffice for any distribution of the slots to buckets. In the test, each bucket
 * first has one slot, and then one bucket has all slots.
 */
START_TEST(chunks_are_enough_for_any_spread)
{
	struct bench *bench = bench_new();

	for (unsigned round = 0; round < 20; round++) {
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			bench_insert(bench, slot,
			             (slot + 1 + round) * (UINT64_C(1) << (16 + 12 * (slot % 4))));
		bench_verify_buckets(bench);
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			if (bench->at_ns[slot] != ABSENT) {
				wheel_remove(&bench->wheel, slot);
				bench_insert(bench, slot, (UINT64_C(7) << 40) + slot);
			}
		bench_verify_buckets(bench);
		for (uint32_t slot = 0; slot < SLOTS; slot++) {
			wheel_remove(&bench->wheel, slot);
			bench->at_ns[slot] = ABSENT;
		}
		bench_verify_slots(bench);
	}
	bench_free(bench);
}
END_TEST

/*
 * The clock is 1 ns before a power of two. The distance from the clock to the slot's instant is a
 * power of two. The loops choose both powers.
 */
START_TEST(lone_slot_comes_out_at_every_level_boundary_and_power_of_two)
{
	struct bench *bench = bench_new();

	for (unsigned k = 0; k <= 62; k++) {
		for (unsigned j = 16; j <= 63; j++) {
			uint64_t base_ns = (UINT64_C(1) << k) - 1;
			uint64_t at_ns = base_ns + (UINT64_C(1) << j);

			expect_context("clock before 2^, distance 2^", k, j);
			bench_enter(bench, base_ns); /* an empty wheel's base may also go back */
			bench_insert(bench, 0, at_ns);
			bench_verify_bound(bench);
			expect_eq(wheel_bound_ns(&bench->wheel), at_ns);
			/*
			 * The base of the wheel moves to the slot's own instant, so the slot comes
			 * out of the wheel.
			 */
			bench_enter(bench, at_ns);
			expect_eq(bench->at_ns[0], ABSENT);
			expect_eq(wheel_bound_ns(&bench->wheel), UINT64_MAX);
		}
	}
	bench_free(bench);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("wheel", argc, argv);
	tests_add(random_operations_keep_every_slot_where_it_belongs, 60);
	tests_add(bound_of_a_long_bucket_is_never_late, 20);
	tests_add(sweep_passes_every_slot_of_a_bucket_whatever_happens_meanwhile, 60);
	tests_add(sweep_tells_the_first_of_a_long_bucket_once, 20);
	tests_add(sweep_ends_where_its_bucket_is_entered, 20);
	tests_add(chunks_are_enough_for_any_spread, 20);
	tests_add(lone_slot_comes_out_at_every_level_boundary_and_power_of_two, 20);
	return tests_run();
}
