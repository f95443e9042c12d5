/* SPDX-License-Identifier: MIT */
/*
 * What no run of a hub reaches: a slot's last generation, and periods near the latest deadline.
 * The simulation has the rest of a pair.
 */
#include "harness.h"

#include "timer/pair.h"

#define MAX_NS ((UINT64_C(1) << 63) - 128)
#define NEVER UINT64_MAX
#define GENERATION_MAX ((UINT64_C(1) << 38) - 1)

TEST(periods_past_the_latest_deadline_are_never, 20)
{
	static const struct {
		uint64_t deadline_ns, interval_ns, now_ns, next_ns, count;
	} rows[] = {
		{ MAX_NS - 64, 64, MAX_NS - 64, MAX_NS, 1 },
		{ MAX_NS - 64, 65, MAX_NS - 64, NEVER, 1 },
		{ MAX_NS, 1, MAX_NS, NEVER, 1 },
		{ 0, MAX_NS, 0, MAX_NS, 1 },
		{ 0, MAX_NS, MAX_NS, NEVER, 2 },
		{ 1, MAX_NS, 1, NEVER, 1 },
		{ MAX_NS, MAX_NS, 2 * MAX_NS - 1, NEVER, 1 },
		{ MAX_NS, MAX_NS, 2 * MAX_NS, NEVER, 1 },
		{ 1, 1, UINT64_MAX, NEVER, MAX_NS },
		/* A timer with three periods a second runs for a million periods. */
		{ 5, 333333334, UINT64_C(333333334000004), UINT64_C(333333334000005), 1000000 },
	};

	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		expect_context("row", i, 0);
		expect_eq(period_next_ns(rows[i].deadline_ns, rows[i].interval_ns, rows[i].now_ns),
		          rows[i].next_ns);
		expect_eq(period_count(rows[i].deadline_ns, rows[i].interval_ns, rows[i].now_ns),
		          rows[i].count);
	}
}

TEST(generations_go_round_without_zero, 20)
{
	expect_eq(generation_next(0), 1);
	expect_eq(generation_next(1), 2);
	expect_eq(generation_next(GENERATION_MAX - 1), GENERATION_MAX);
	expect_eq(generation_next(GENERATION_MAX), 1);
}
