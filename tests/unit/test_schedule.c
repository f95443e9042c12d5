/* SPDX-License-Identifier: MIT */
/*
 * The schedule in virtual time. The tests ask what a slot that is alone costs at every edge of the
 * levels and up to 2^62, what many slots in one bucket do, and how much memory the schedule has.
 * There are no random slots here, because the simulation schedules those.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/schedule.h"

#define SLOTS 200
#define NOWHERE UINT64_MAX

struct bench {
	struct schedule schedule;
	struct timer_filing filings[SLOTS];
	uint64_t at_ns[SLOTS]; /* the model: instant of each slot, or NOWHERE */
	uint64_t now_ns;
};

static struct bench *bench_new(void)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	expect(bench);
	memset(bench->at_ns, 0xff, sizeof(bench->at_ns));
	expect_eq(schedule_open(&bench->schedule, bench->filings, SLOTS), 0);
	return bench;
}

static void bench_free(struct bench *bench)
{
	schedule_close(&bench->schedule);
	free(bench);
}

static uint32_t model_first(const struct bench *bench)
{
	uint32_t first = 0;

	for (uint32_t slot = 1; slot < SLOTS; slot++)
		if (bench->at_ns[slot] < bench->at_ns[first])
			first = slot;
	return first;
}

static void bench_insert(struct bench *bench, uint32_t slot, uint64_t at_ns)
{
	schedule_insert(&bench->schedule, slot, at_ns);
	bench->at_ns[slot] = at_ns;
}

static void bench_remove(struct bench *bench, uint32_t slot)
{
	schedule_remove(&bench->schedule, slot);
	bench->at_ns[slot] = NOWHERE;
}

/* Returns the slot, which must be the model's first, or SLOT_NONE, if none is due. */
static uint32_t bench_take(struct bench *bench)
{
	uint64_t first_ns = bench->at_ns[model_first(bench)];
	uint64_t cascaded = bench->schedule.cascaded;
	uint32_t slot = schedule_take(&bench->schedule, bench->now_ns, true);

	if (slot == SLOT_DEAR) {
		expect_eq(bench->schedule.cascaded, cascaded);
		slot = schedule_take(&bench->schedule, bench->now_ns, false);
		expect(slot != SLOT_DEAR);
	}
	if (slot == SLOT_NONE) {
		expect(first_ns > bench->now_ns || first_ns == NOWHERE);
		return SLOT_NONE;
	}
	expect_lt(slot, SLOTS);
	expect_eq(bench->at_ns[slot], first_ns);
	expect_le(first_ns, bench->now_ns);
	expect_eq(bench->filings[slot].where, 0);
	bench->at_ns[slot] = NOWHERE;
	return slot;
}

static unsigned bench_take_all(struct bench *bench)
{
	unsigned count = 0;

	while (bench_take(bench) != SLOT_NONE)
		count++;
	return count;
}

/* For a single far slot the next time is exact, so that the owner wakes only once. */
static void check_lone(struct bench *bench, struct dice *dice, uint64_t now_ns, uint64_t at_ns)
{
	expect_context("clock, instant", now_ns, at_ns);
	bench->schedule.wheel.base_ns = 0; /* an empty wheel must behave like a new wheel */
	bench->now_ns = now_ns;
	expect_eq(bench_take(bench), SLOT_NONE);
	bench_insert(bench, 7, at_ns);
	expect_eq(schedule_next_ns(&bench->schedule), at_ns);
	/* if the owner wakes up early, for another reason, nothing is due */
	for (unsigned i = 0; i < 3; i++) {
		bench->now_ns += dice_below(dice, at_ns - bench->now_ns);
		expect_eq(bench_take(bench), SLOT_NONE);
		expect_eq(schedule_next_ns(&bench->schedule), at_ns);
	}
	bench->now_ns = at_ns - 1;
	expect_eq(bench_take(bench), SLOT_NONE);
	expect_eq(schedule_next_ns(&bench->schedule), at_ns);
	bench->now_ns = at_ns;
	expect_eq(bench_take(bench), 7);
	expect_eq(schedule_next_ns(&bench->schedule), UINT64_MAX);
}

TEST(lone_distant_slot_needs_one_take_from_every_boundary, 20)
{
	struct dice dice = dice_new(5000);
	struct bench *bench = bench_new();

	for (unsigned k = 0; k <= 62; k++) {
		for (unsigned j = 0; j <= 62; j++) {
			uint64_t now_ns = (UINT64_C(1) << k) - 1;

			check_lone(bench, &dice, now_ns, now_ns + (UINT64_C(1) << j));
			check_lone(bench, &dice, now_ns, now_ns + 1 + dice_magnitude(&dice, 62));
			if (j > k)
				check_lone(bench, &dice, now_ns, UINT64_C(1) << j);
		}
	}
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t now_ns = dice_boundary(&dice);

		check_lone(bench, &dice, now_ns, now_ns + 1 + dice_magnitude(&dice, 62));
	}
	bench_free(bench);
}

/* Each move of a slot goes down at least one level, so a slot moves at most four times. */
TEST(slots_cascade_at_most_once_per_level, 20)
{
	struct dice dice = dice_new(20000);
	struct bench *bench = bench_new();

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		bench_insert(bench, slot, 1 + dice_magnitude(&dice, 62));
	while (bench->now_ns != UINT64_MAX) {
		(void)bench_take_all(bench);
		bench->now_ns = schedule_next_ns(&bench->schedule);
	}
	expect_le(bench->schedule.cascaded, (uint64_t)SLOTS * WHEEL_LEVELS);
	bench_free(bench);
	/* a slot that is alone in its bucket is taken from there, and never moved or sorted */
	bench = bench_new();
	for (uint32_t slot = 0; slot < 40; slot++)
		bench_insert(bench, slot, UINT64_C(1) << (22 + slot));
	bench->now_ns = UINT64_MAX - 1;
	expect_eq(bench_take_all(bench), 40);
	expect_eq(bench->schedule.cascaded, 0);
	bench_free(bench);
}

/* MANY fill the wheel's memory to its end; NEAR lie in one bucket, and are sorted in the run. */
#define MANY 300000
#define NEAR 5000

static uint32_t bench_take_cheaply(struct bench *bench, uint64_t now_ns)
{
	return schedule_take(&bench->schedule, now_ns, true);
}

/* Law 13: nor does a slot that is earlier than the whole bucket. A cheap take sorts nothing. */
TEST(first_of_many_does_not_wait_for_the_others, 20)
{
	struct bench *bench = bench_new();

	bench_insert(bench, 0, SEC - 1);
	for (uint32_t slot = 2; slot < SLOTS; slot++)
		bench_insert(bench, slot, SEC + slot % 3);
	bench_insert(bench, 1, SEC - 2);
	expect_eq(bench_take_cheaply(bench, SEC - 3), SLOT_DEAR); /* no slot is due yet */
	expect_eq(bench_take_cheaply(bench, SEC + 2), 1);
	expect_eq(bench_take_cheaply(bench, SEC + 2), SLOT_DEAR);
	schedule_insert(&bench->schedule, 1, SEC - 2);
	expect_eq(bench_take_cheaply(bench, SEC - 2), 1);
	bench->at_ns[1] = NOWHERE;
	expect_eq(bench->schedule.cascaded, 0);
	bench->now_ns = SEC + 2;
	expect_eq(bench_take(bench), 0);
	expect_eq(bench->schedule.cascaded, SLOTS - 1);
	for (uint32_t slot = 2; slot < SLOTS; slot++)
		expect(bench_take_cheaply(bench, SEC + 2) < SLOTS);
	expect_eq(bench_take_cheaply(bench, SEC + 2), SLOT_NONE);
	bench_free(bench);
}

/* The wheel's time never passes the clock, so that an earlier slot still fits into the wheel. */
TEST(slots_before_the_next_one_get_into_the_wheel, 20)
{
	struct bench *bench = bench_new();

	bench_insert(bench, 0, UINT64_C(1) << 40);
	expect_eq(bench_take_all(bench), 0);
	bench_insert(bench, 1, UINT64_C(1) << 30);
	expect_eq(bench->filings[1].where & WHERE_MASK, WHERE_WHEEL);
	bench_free(bench);
}

TEST(many_at_once_come_out_in_order, 60)
{
	struct dice dice = dice_new(7);
	struct timer_filing *filings = calloc(MANY, sizeof(*filings));
	uint64_t *at_ns = calloc(MANY, sizeof(*at_ns));
	uint64_t bucket_ns = 5 * SEC >> WHEEL_FINEST_SHIFT << WHEEL_FINEST_SHIFT;
	struct schedule schedule;
	uint64_t last_ns = 0;

	expect(filings && at_ns);
	expect_eq(schedule_open(&schedule, filings, MANY), 0);
	for (uint32_t slot = 0; slot < MANY; slot++) {
		at_ns[slot] = slot < NEAR ? bucket_ns + dice_below(&dice, 1u << WHEEL_FINEST_SHIFT)
		                          : 10 * SEC + dice_below(&dice, HOUR);
		schedule_insert(&schedule, slot, at_ns[slot]);
	}
	for (uint32_t taken = 0; taken < MANY; taken++) {
		uint32_t slot = schedule_take(&schedule, taken < NEAR ? 6 * SEC : 2 * HOUR, false);

		expect_context("taken", taken, slot);
		expect_lt(slot, MANY);
		expect_le(last_ns, at_ns[slot]);
		expect_eq(at_ns[slot] < 10 * SEC, taken < NEAR);
		last_ns = at_ns[slot];
		at_ns[slot] = 0; /* if the slot comes twice, the check of at_ns fails */
	}
	expect_eq(schedule_take(&schedule, 2 * HOUR, false), SLOT_NONE);
	schedule_close(&schedule);
	free(at_ns);
	free(filings);
}

/* The wheel's arrays are aligned to 8 bytes. Those of the run and the heap need only 4. */
TEST(any_number_of_slots_leaves_the_levels_aligned, 20)
{
	struct timer_filing filings[8];

	for (uint32_t slots = 1; slots <= COUNT_OF(filings); slots++) {
		struct schedule schedule;

		memset(filings, 0, sizeof(filings));
		expect_eq(schedule_open(&schedule, filings, slots), 0);
		expect_eq((uintptr_t)schedule.wheel.levels % _Alignof(struct wheel_level), 0);
		expect_eq((uintptr_t)schedule.wheel.chunks % _Alignof(struct wheel_chunk), 0);
		for (uint32_t slot = 0; slot < slots; slot++)
			schedule_insert(&schedule, slot, UINT64_C(1) << (7 * slot + 7));
		expect_eq(schedule_next_ns(&schedule), 128);
		schedule_close(&schedule);
	}
}

/* schedule_ahead() counts slots by time range. Of a long bucket it reads a few, but counts all. */
TEST(what_lies_ahead_is_counted_by_range, 20)
{
	struct bench *bench = bench_new();
	uint64_t counts[AHEAD_RANGES];
	uint32_t slot = 0;

	bench_insert(bench, slot++, 0); /* due, so it is in the heap */
	for (unsigned range = 0; range + 1 < AHEAD_RANGES; range++)
		bench_insert(bench, slot++, ahead_within_ns(range));
	bench_insert(bench, slot++, 2 * HOUR);
	for (unsigned i = 0; i < 100; i++)
		bench_insert(bench, slot++, 30 * SEC + i);
	bench_remove(bench, slot - 1);
	schedule_ahead(&bench->schedule, 0, counts);
	for (unsigned range = 0; range < AHEAD_RANGES; range++) {
		expect_context("range", range, counts[range]);
		expect_eq(counts[range], range == 0                           ? 2
		                         : ahead_within_ns(range) == 60 * SEC ? 100
		                                                              : 1);
	}
	bench_free(bench);
}
