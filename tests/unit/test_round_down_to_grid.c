/* SPDX-License-Identifier: MIT */
/*
 * The times to which a loop's deadlines are rounded, for every power of two: in the future, and not
 * after the deadline.
 */
#include "harness.h"

#include "loop/round_down_to_grid.h"

TEST(grid_is_an_eighth_of_the_rest, 10)
{
	for (uint64_t rest_ns = 0; rest_ns < 8; rest_ns++)
		expect_eq(grid_for(rest_ns), 0);
	for (unsigned bit = 3; bit < 64; bit++) {
		uint64_t least = UINT64_C(1) << bit, most = least + (least - 1);

		expect_eq(grid_for(least), bit - 3);
		expect_eq(grid_for(most), bit - 3);
		expect_le((UINT64_C(1) << grid_for(least)) * 8, least);
		expect_lt(most / 16, UINT64_C(1) << grid_for(most));
	}
}

TEST(instant_is_on_the_grid_or_exact, 10)
{
	struct dice dice = dice_new(1);

	for (unsigned i = 0; i < 200000; i++) {
		uint64_t now_ns = dice_magnitude(&dice, 63);
		uint64_t deadline_ns = now_ns + 1 + dice_magnitude(&dice, 63);
		unsigned shift = (unsigned)dice_below(&dice, 61);
		uint64_t at_ns = grid_instant_ns(shift, deadline_ns, now_ns);

		expect_lt(now_ns, at_ns);
		expect_le(at_ns, deadline_ns);
		expect_lt(deadline_ns - at_ns, UINT64_C(1) << shift);
		expect(at_ns == deadline_ns || grid_holds(shift, at_ns));
		/*
		 * An instant off the grid has one of two reasons:
		 *
		 *   - The last grid time before the deadline has passed.
		 *   - The last grid time before the deadline is less than GRID_NEAR_NS before
		 *     the deadline.
		 */
		if (at_ns == deadline_ns && !grid_holds(shift, at_ns))
			expect((deadline_ns >> shift) << shift <= now_ns ||
			       deadline_ns % (UINT64_C(1) << shift) < GRID_NEAR_NS);
	}
}

TEST(short_rest_of_a_moved_timeout_keeps_its_grid, 10)
{
	unsigned shift = grid_for(3 * SEC);

	expect_eq(grid_next(shift, false, 3 * SEC), shift);
	expect_eq(grid_next(shift, false, 1), shift);
	expect_eq(grid_next(shift, true, 3 * SEC * 7 / 8), shift);
	/* A timeout with a delay of another length gets a grid of another width. */
	expect_eq(grid_next(shift, false, HOUR), grid_for(HOUR));
	expect_eq(grid_next(shift, true, SEC / 100), grid_for(SEC / 100));
}
