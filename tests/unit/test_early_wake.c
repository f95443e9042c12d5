/* SPDX-License-Identifier: MIT */
/*
 * The margin by which the owner asks to be woken early, against a quantile of the last latenesses:
 * fifteen sleeps in sixteen are below it; it adapts within a few hundred sleeps; the owner never
 * spins long, nor too early in more than fifteen sleeps of sixteen.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "owner/early_wake.h"

#define LATE_KEPT 1024

static int compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Returns a quantile of the list: `percent` percent of the latenesses are smaller. */
static uint64_t quantile_ns(const uint64_t *late_ns, unsigned percent)
{
	uint64_t sorted[LATE_KEPT];

	memcpy(sorted, late_ns, sizeof(sorted));
	qsort(sorted, LATE_KEPT, sizeof(sorted[0]), compare);
	return sorted[LATE_KEPT * percent / 100];
}

/* `base_ns` plus up to `width_ns`, on a simulated machine. */
static uint64_t machine_late_ns(struct dice *dice, uint64_t base_ns, uint64_t width_ns)
{
	/* One sleep in fifty is hardly late, because the processor had not halted. */
	return dice_one_in(dice, 50) ? dice_below(dice, 1000)
	                             : base_ns + dice_below(dice, width_ns);
}

TEST(lead_is_what_few_sleeps_exceed, 60)
{
	struct dice dice = dice_new(1);

	for (unsigned machine = 0; machine < scaled(400); machine++) {
		uint64_t base_ns = 2000 + dice_below(&dice, 4000);
		uint64_t width_ns = 2000 + dice_below(&dice, 8000);
		uint64_t late_ns[LATE_KEPT], leads_ns = 0;
		struct early_wake early_wake = { 0 };

		expect_context("base and width", base_ns, width_ns);
		for (unsigned i = 0; i < 2 * LATE_KEPT; i++) {
			late_ns[i % LATE_KEPT] = machine_late_ns(&dice, base_ns, width_ns);
			leads_ns += i < LATE_KEPT ? 0 : early_wake.ns;
			early_wake_learn(&early_wake, late_ns[i % LATE_KEPT]);
		}
		expect_lt(quantile_ns(late_ns, 88), leads_ns / LATE_KEPT);
		expect_lt(leads_ns / LATE_KEPT, quantile_ns(late_ns, 98) + EARLY_WAKE_UP_NS);
	}
}

TEST(lead_follows_a_machine_that_changes, 10)
{
	struct early_wake early_wake = { 0 };

	for (unsigned i = 0; i < 40; i++)
		early_wake_learn(&early_wake, 14000);
	expect_le(14000 - EARLY_WAKE_DOWN_NS, early_wake.ns);
	expect_le(early_wake.ns, 14000 + EARLY_WAKE_UP_NS);
	for (unsigned i = 0; i < 500; i++)
		early_wake_learn(&early_wake, 3000);
	expect_le(3000 - EARLY_WAKE_DOWN_NS, early_wake.ns);
	expect_le(early_wake.ns, 3000 + EARLY_WAKE_UP_NS);
	for (unsigned i = 0; i < 500; i++)
		early_wake_learn(&early_wake, 0);
	expect_eq(early_wake.ns, 0);
}

/* Returns the next lateness in one of three sequences that make the margin large. */
static uint64_t worst_ns(struct dice *dice, const struct early_wake *lead, unsigned way)
{
	if (way == 0)
		return lead->ns >= EARLY_WAKE_MAX_NS ? 0 : UINT64_MAX;
	if (way == 1)
		return dice_one_in(dice, 16) ? UINT64_MAX : 0;
	return dice_magnitude(dice, 20);
}

TEST(spins_are_short_and_few_in_any_sequence, 60)
{
	struct dice dice = dice_new(2);

	for (unsigned way = 0; way < 3; way++) {
		struct early_wake early_wake = { 0 };
		uint64_t spins = 0;

		for (uint64_t sleeps = 1; sleeps < scaled(100000); sleeps++) {
			uint64_t late_ns = worst_ns(&dice, &early_wake, way);

			spins += early_wake.ns > EARLY_WAKE_DOWN_NS &&
			         late_ns < early_wake.ns - EARLY_WAKE_DOWN_NS;
			early_wake_learn(&early_wake, late_ns);
			expect_le(early_wake.ns, EARLY_WAKE_MAX_NS);
			expect_le(spins, sleeps * 15 / 16);
		}
		expect_lt(0, spins);
	}
}
