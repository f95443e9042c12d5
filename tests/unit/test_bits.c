/* SPDX-License-Identifier: MIT */
/* Compares the functions for bit arithmetic with loops that compute the same results. */
#include "harness.h"

#include "base/bits.h"

TEST(lowest_and_highest_are_found_wherever_they_are, 10)
{
	for (unsigned low = 0; low < 64; low++) {
		for (unsigned high = low; high < 64; high++) {
			uint64_t word = (uint64_t)1 << low | (uint64_t)1 << high;

			expect_eq(bits_lowest(word), low);
			expect_eq(bits_highest(word), high);
		}
	}
}

TEST(power_of_two_is_the_smallest_that_holds, 10)
{
	for (unsigned k = 2; k < 63; k++) {
		uint64_t power = (uint64_t)1 << k;

		expect_eq(bits_power_of_two(power - 1), power);
		expect_eq(bits_power_of_two(power), power);
		expect_eq(bits_power_of_two(power + 1), 2 * power);
	}
	expect_eq(bits_power_of_two(0), 1);
	expect_eq(bits_power_of_two(1), 1);
	expect_eq(bits_power_of_two(2), 2);
	expect_eq(bits_power_of_two((uint64_t)1 << 63), (uint64_t)1 << 63);
}

TEST(sums_saturate_instead_of_wrapping, 10)
{
	expect_eq(u64_add_saturating(1, 2), 3);
	expect_eq(u64_add_saturating(UINT64_MAX - 1, 1), UINT64_MAX);
	expect_eq(u64_add_saturating(UINT64_MAX, 1), UINT64_MAX);
	expect_eq(u64_add_saturating(UINT64_MAX, UINT64_MAX), UINT64_MAX);
	expect_eq(u64_add_saturating((uint64_t)1 << 63, (uint64_t)1 << 63), UINT64_MAX);
	expect_eq(u64_min(3, UINT64_MAX), 3);
	expect_eq(u64_min(UINT64_MAX, 3), 3);
	expect_eq(u64_max(3, UINT64_MAX), UINT64_MAX);
	expect_eq(u64_max(UINT64_MAX, 3), UINT64_MAX);
}
