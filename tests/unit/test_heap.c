/* SPDX-License-Identifier: MIT */
/* Compares the heap of the schedule with a sorted array. */
#include "harness.h"

#include <string.h>

#include "schedule/heap.h"

#define SLOTS 300

/* `at_ns` has the instant of every slot in it, ABSENT for the others. */
struct bench {
	struct heap heap;
	struct timer_due entries[SLOTS];
	struct timer_filing filings[SLOTS];
	uint64_t at_ns[SLOTS];
	uint32_t count;
};

#define ABSENT UINT64_MAX

static void bench_init(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	memset(bench->at_ns, 0xff, sizeof(bench->at_ns));
	heap_init(&bench->heap, bench->entries, bench->filings);
}

static void bench_verify(const struct bench *bench)
{
	expect_eq(bench->heap.count, bench->count);
	for (uint32_t i = 0; i < bench->count; i++) {
		const struct timer_due *entry = &bench->entries[i];

		expect_eq(bench->filings[entry->slot].where, WHERE_HEAP | i);
		expect_eq(entry->at_ns, bench->at_ns[entry->slot]);
		if (i > 0)
			expect_le(bench->entries[(i - 1) / 4].at_ns, entry->at_ns);
	}
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		expect_eq(bench->filings[slot].where == 0, bench->at_ns[slot] == ABSENT);
}

static uint64_t bench_min_ns(const struct bench *bench)
{
	uint64_t min_ns = ABSENT;

	for (uint32_t slot = 0; slot < SLOTS; slot++)
		if (bench->at_ns[slot] < min_ns)
			min_ns = bench->at_ns[slot];
	return min_ns;
}

static void bench_insert(struct bench *bench, uint32_t slot, uint64_t at_ns)
{
	heap_insert(&bench->heap, (struct timer_due){ .at_ns = at_ns, .slot = slot });
	expect_eq(heap_at_ns(&bench->heap, slot), at_ns);
	bench->at_ns[slot] = at_ns;
	bench->count++;
}

static void bench_take(struct bench *bench)
{
	uint64_t min_ns = bench_min_ns(bench);
	uint32_t slot;

	expect_eq(heap_first_ns(&bench->heap), min_ns);
	slot = heap_take(&bench->heap);
	expect_eq(bench->at_ns[slot], min_ns);
	bench->at_ns[slot] = ABSENT;
	bench->count--;
}

/* Of a small range, with many equal ones, or a large one. */
static uint64_t bench_instant_ns(struct dice *dice)
{
	switch (dice_below(dice, 4)) {
	case 0:
		return dice_below(dice, 8);
	case 1:
		return UINT64_MAX - 1 - dice_below(dice, 8);
	default:
		return dice_magnitude(dice, 63);
	}
}

static void bench_step(struct bench *bench, struct dice *dice)
{
	uint32_t slot = (uint32_t)dice_below(dice, SLOTS);

	if (bench->at_ns[slot] == ABSENT) {
		bench_insert(bench, slot, bench_instant_ns(dice));
	} else if (dice_one_in(dice, 2)) {
		heap_remove(&bench->heap, slot);
		bench->at_ns[slot] = ABSENT;
		bench->count--;
	} else {
		bench_take(bench);
	}
}

TEST(random_operations_agree_with_a_sorted_array, 60)
{
	unsigned rounds = scaled(40);

	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(round);
		struct bench bench;

		bench_init(&bench);
		for (unsigned step = 0; step < 1000; step++) {
			expect_context("round, step", round, step);
			bench_step(&bench, &dice);
			bench_verify(&bench);
		}
		while (bench.count > 0)
			bench_take(&bench);
		expect_eq(heap_first_ns(&bench.heap), UINT64_MAX);
	}
}

TEST(any_entry_can_be_removed_and_the_rest_comes_in_order, 20)
{
	for (uint32_t size = 1; size <= 40; size++) {
		for (uint32_t victim = 0; victim < size; victim++) {
			struct dice dice = dice_new(size);
			struct bench bench;

			bench_init(&bench);
			for (uint32_t slot = 0; slot < size; slot++)
				bench_insert(&bench, slot, dice_below(&dice, 50));
			heap_remove(&bench.heap, victim);
			bench.at_ns[victim] = ABSENT;
			bench.count--;
			bench_verify(&bench);
			while (bench.count > 0)
				bench_take(&bench);
		}
	}
}
