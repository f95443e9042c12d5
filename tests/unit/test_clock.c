/* SPDX-License-Identifier: MIT */
/* A manual clock is what it was set to, and never goes back; any other is the kernel's. */
#include "harness.h"

#include <timerhub.h>

#include "base/clock.h"

TEST(manual_clock_starts_at_zero_and_never_goes_back, 10)
{
	struct clock clock;

	clock_init(&clock, 0, true);
	expect_eq(clock_now_ns(&clock), 0);
	expect(clock_set(&clock, 0));
	expect(clock_set(&clock, 100));
	expect(clock_set(&clock, 100));
	expect_eq(clock_now_ns(&clock), 100);
	expect(!clock_set(&clock, 99));
	expect_eq(clock_now_ns(&clock), 100);
	expect(clock_set(&clock, UINT64_MAX));
	expect(!clock_set(&clock, 0));
	expect_eq(clock_now_ns(&clock), UINT64_MAX);
}

TEST(real_clock_is_the_kernels_monotonic_one, 10)
{
	struct clock clock;
	uint64_t before_ns, now_ns, after_ns;

	clock_init(&clock, TIMERHUB_CLOCK_MONOTONIC, false);
	for (unsigned i = 0; i < 1000; i++) {
		before_ns = monotonic_ns();
		now_ns = clock_now_ns(&clock);
		after_ns = monotonic_ns();
		expect_le(before_ns, now_ns);
		expect_le(now_ns, after_ns);
	}
}
