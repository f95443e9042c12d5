/* SPDX-License-Identifier: MIT */
/*
 * The ring of handles to a queue's consumers: each once, in order, over laps, restarts and
 * compactions.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "queue/outbox.h"

TEST(nothing_comes_out_before_it_is_published, 20)
{
	struct outbox outbox = { .cells = NULL };
	uint64_t handles[8];

	expect_eq(outbox_open(&outbox, 3), 0);
	expect_eq(outbox_count(&outbox), 0);
	expect(outbox_has_room(&outbox));
	(void)outbox_put(&outbox, 41);
	(void)outbox_put(&outbox, 42);
	expect_eq(outbox_count(&outbox), 0);
	expect_eq(outbox_take(&outbox, handles, 8), 0);
	outbox_publish(&outbox);
	expect_lt(0, outbox_count(&outbox));
	expect_eq(outbox_take(&outbox, handles, 1), 1);
	expect_eq(handles[0], 41);
	expect_eq(outbox_take(&outbox, handles, 8), 1);
	expect_eq(handles[0], 42);
	expect_eq(outbox_count(&outbox), 0);
	outbox_close(&outbox);
}

/* Room for 2 x n handles while at most n timers are pending, and it says when that is used up. */
TEST(room_is_told_exactly, 20)
{
	static const uint32_t capacities[] = { 1, 2, 3, 7, 8, 100, 2047, 2048, 5000 };

	for (unsigned i = 0; i < COUNT_OF(capacities); i++) {
		struct outbox outbox = { .cells = NULL };
		uint64_t handle, count = 0, cells;

		expect_context("capacity", capacities[i], 0);
		expect_eq(outbox_open(&outbox, capacities[i]), 0);
		cells = outbox.mask + 1;
		expect_le(2 * capacities[i], cells);
		for (unsigned round = 0; round < 3; round++) {
			while (outbox_has_room(&outbox)) {
				(void)outbox_put(&outbox, ++count);
				outbox_publish(&outbox);
				expect_le(count, (round + 1) * cells);
			}
			expect_eq(count, (round + 1) * cells);
			for (uint64_t j = 1; j <= cells; j++) {
				expect_eq(outbox_take(&outbox, &handle, 1), 1);
				expect_eq(handle, round * cells + j);
				/* Each handle taken makes room for one handle. */
				if (j == 1)
					expect(outbox_has_room(&outbox));
			}
			expect_eq(outbox_count(&outbox), 0);
		}
		outbox_close(&outbox);
	}
}

/* One thread puts, publishes and takes at random; two counters are the model. */
static void check_steps(struct dice *dice, uint32_t capacity)
{
	uint64_t put = 0, published = 0, taken = 0;
	uint64_t handles[64];
	struct outbox outbox = { .cells = NULL };

	expect_eq(outbox_open(&outbox, capacity), 0);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned many = 1 + (unsigned)dice_magnitude(dice, 6) % 64;

		switch (dice_below(dice, 3)) {
		case 0:
			for (; many > 0 && outbox_has_room(&outbox); many--)
				(void)outbox_put(&outbox, ++put);
			break;
		case 1:
			outbox_publish(&outbox);
			published = put;
			break;
		default:
			many = outbox_take(&outbox, handles, many);
			for (unsigned i = 0; i < many; i++)
				expect_eq(handles[i], ++taken);
			expect_le(taken, published);
			expect_eq(outbox_count(&outbox) == 0, taken == published);
		}
		if (put - taken < 2 * capacity)
			expect(outbox_has_room(&outbox));
	}
	outbox_close(&outbox);
}

TEST(handles_come_in_order_through_laps_and_restarts, 20)
{
	unsigned rounds = scaled(50);

	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(round);

		expect_context("round", round, 0);
		check_steps(&dice, 1 + (uint32_t)dice_magnitude(&dice, 13));
	}
}

/* If consumers keep up, the outbox uses only its first cells. */
TEST(empty_outbox_goes_back_to_the_beginning, 20)
{
	struct outbox outbox = { .cells = NULL };
	uint64_t handle, place;

	expect_eq(outbox_open(&outbox, 100000), 0);
	for (uint64_t i = 1; i < 20000; i++) {
		expect(outbox_has_room(&outbox));
		place = outbox_put(&outbox, i);
		expect_le(place & outbox.mask, 4096);
		outbox_publish(&outbox);
		expect_eq(outbox_take(&outbox, &handle, 1), 1);
		expect_eq(handle, i);
	}
	outbox_close(&outbox);
}

/* ---- compaction ---- */

struct keeping {
	const bool *wanted;
	uint64_t asked, kept;
	uint64_t last_handle;
	uint64_t *places; /* place of each kept handle in the outbox */
};

static bool keep_wanted(void *context, uint64_t handle, uint64_t new_place)
{
	struct keeping *keeping = context;

	expect_lt(keeping->last_handle, handle);
	keeping->last_handle = handle;
	keeping->asked++;
	if (!keeping->wanted[handle])
		return false;
	keeping->places[handle] = new_place;
	keeping->kept++;
	return true;
}

TEST(compaction_keeps_what_is_wanted_in_order, 20)
{
	unsigned rounds = scaled(500);

	for (unsigned round = 0; round < rounds; round++) {
		struct dice dice = dice_new(500 + round);
		uint32_t capacity = 1 + (uint32_t)dice_magnitude(&dice, 8);
		struct outbox outbox = { .cells = NULL };
		static uint64_t places[4096];
		static bool wanted[4096];
		struct keeping keeping = { .wanted = wanted, .places = places };
		uint64_t handle, taken = 0, put = 0;

		expect_context("round", round, 0);
		expect_eq(outbox_open(&outbox, capacity), 0);
		while (outbox_has_room(&outbox)) {
			(void)outbox_put(&outbox, ++put);
			wanted[put] = dice_one_in(&dice, 3);
		}
		outbox_publish(&outbox);
		for (uint64_t i = dice_below(&dice, put); i > 0; i--)
			taken += outbox_take(&outbox, &handle, 1);
		expect_eq(outbox_compact(&outbox, keep_wanted, &keeping), keeping.kept);
		expect_eq(keeping.asked, put - taken);
		/* after a compaction, consumers see no handle until the owner publishes */
		expect_eq(outbox_count(&outbox), 0);
		expect(!outbox_exhausted(&outbox));
		outbox_publish(&outbox);
		for (uint64_t i = taken + 1; i <= put; i++) {
			if (!wanted[i])
				continue;
			/* a handle is blanked at its new place, and another handle is not */
			outbox_blank(&outbox, i + 1, (uint32_t)places[i]);
			if (i % 2 == 0)
				outbox_blank(&outbox, i, (uint32_t)places[i]);
			expect_eq(outbox_take(&outbox, &handle, 1), 1);
			expect_eq(handle, i % 2 == 0 ? 0 : i);
		}
		expect_eq(outbox_count(&outbox), 0);
		expect(outbox_exhausted(&outbox));
		outbox_close(&outbox);
	}
}
