/* SPDX-License-Identifier: MIT */
/* The sorted array of the wheel's current bucket against qsort(), with and without removals. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/run.h"

#define SLOTS 1000
#define REMOVED UINT64_MAX

struct bench {
	struct run run;
	struct timer_due entries[SLOTS], spare[SLOTS];
	struct timer_filing filings[SLOTS];
	uint64_t at_ns[SLOTS]; /* the model of the run: the instant of each slot */
};

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* `count` slots within `spread` ns of one finest bucket. */
static void bench_fill(struct bench *bench, struct dice *dice, uint32_t count, uint64_t spread)
{
	uint64_t bucket_ns = dice_magnitude(dice, 47) << 16;

	for (uint32_t slot = 0; slot < count; slot++) {
		bench->at_ns[slot] = bucket_ns + dice_below(dice, spread);
		run_add(&bench->run,
		        (struct timer_due){ .at_ns = bench->at_ns[slot], .slot = slot });
	}
	run_sort(&bench->run);
	for (uint32_t slot = 0; slot < count; slot++)
		expect_eq(run_at_ns(&bench->run, slot), bench->at_ns[slot]);
}

/* About one in `one_in`, anywhere; the rest, sorted, in `left_ns`. */
static uint32_t bench_remove_some(struct bench *bench, struct dice *dice, uint32_t count,
                                  unsigned one_in, uint64_t *left_ns)
{
	uint32_t left = 0;

	for (uint32_t slot = 0; slot < count; slot++) {
		if (one_in > 0 && dice_one_in(dice, one_in)) {
			run_remove(&bench->run, slot);
			expect_eq(bench->filings[slot].where, 0);
			bench->at_ns[slot] = REMOVED;
		} else {
			left_ns[left++] = bench->at_ns[slot];
		}
	}
	qsort(left_ns, left, sizeof(*left_ns), compare);
	return left;
}

/* Takes all slots. run_take() must take the slot that run_peek() has returned. */
static void bench_take_all(struct bench *bench, const uint64_t *left_ns, uint32_t left)
{
	for (uint32_t i = 0; i < left; i++) {
		uint32_t peeked = run_peek(&bench->run, 0);
		uint32_t slot;

		expect(!run_empty(&bench->run));
		expect_eq(run_first_ns(&bench->run), left_ns[i]);
		slot = run_take(&bench->run);
		expect_eq(slot, peeked);
		expect_eq(bench->at_ns[slot], left_ns[i]);
		expect_eq(bench->filings[slot].where, 0);
		bench->at_ns[slot] = REMOVED;
	}
	expect(run_empty(&bench->run));
	expect_eq(run_first_ns(&bench->run), UINT64_MAX);
	expect_eq(run_peek(&bench->run, 0), SLOT_NONE);
}

TEST(slots_come_in_order_whatever_was_removed, 20)
{
	static struct bench bench;
	unsigned rounds = scaled(1000);
	uint64_t left_ns[SLOTS];

	run_init(&bench.run, bench.entries, bench.spare, bench.filings);
	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(round);
		uint32_t count = 1 + (uint32_t)dice_magnitude(&dice, 10) % SLOTS;
		uint64_t spread = 1 + dice_magnitude(&dice, 16) % 65536;
		uint32_t left;

		expect_context("round, count", round, count);
		bench_fill(&bench, &dice, count, spread);
		left = bench_remove_some(&bench, &dice, count, round % 4, left_ns);
		bench_take_all(&bench, left_ns, left);
	}
}

TEST(slots_can_be_removed_while_others_are_taken, 20)
{
	static struct bench bench;
	unsigned rounds = scaled(1000);

	run_init(&bench.run, bench.entries, bench.spare, bench.filings);
	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(50000 + round);
		uint32_t count = 1 + (uint32_t)dice_magnitude(&dice, 7);
		uint64_t last_ns = 0;

		expect_context("round, count", round, count);
		bench_fill(&bench, &dice, count, 65536);
		for (uint32_t left = count; left > 0; left--) {
			uint32_t slot = (uint32_t)dice_below(&dice, count);

			if (bench.at_ns[slot] != REMOVED) {
				run_remove(&bench.run, slot);
			} else {
				expect_le(last_ns, run_first_ns(&bench.run));
				last_ns = run_first_ns(&bench.run);
				slot = run_take(&bench.run);
				expect_eq(bench.at_ns[slot], last_ns);
			}
			bench.at_ns[slot] = REMOVED;
		}
		expect(run_empty(&bench.run));
	}
}
