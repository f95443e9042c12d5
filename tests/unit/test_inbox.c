/* SPDX-License-Identifier: MIT */
/*
 * Tests the inbox (the rings of slots from callers to the owner, one ring for each lane). The owner
 * takes each pushed slot once, in order within a lane. The simulation tests it with threads.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/test_point.h"
#include "owner/inbox.h"

/*
 * Drains the inbox once, in portions of `batch` slots. Returns the number of slots that it has
 * taken.
 */
static unsigned look(struct inbox *inbox, uint32_t *slots, unsigned max, unsigned batch)
{
	unsigned total = 0, count;

	inbox_begin(inbox);
	while (total + batch <= max && (count = inbox_take(inbox, slots + total, batch)) > 0)
		total += count;
	return total;
}

START_TEST(one_lane_is_first_in_first_out_through_many_laps)
{
	struct dice dice = dice_new(1);
	uint32_t slots[512];
	struct inbox inbox = { .lanes = NULL };

	expect_eq(inbox_open(&inbox, 200, NULL), 0);
	for (unsigned round = 0; round < 3000; round++) {
		unsigned count = (unsigned)dice_below(&dice, 201);

		expect_context("round, count", round, count);
		expect(inbox_empty(&inbox));
		for (unsigned i = 0; i < count; i++) {
			(void)inbox_push(&inbox, 0, i);
			expect(!inbox_empty(&inbox));
		}
		expect_eq(look(&inbox, slots, COUNT_OF(slots), 1 + (unsigned)dice_below(&dice, 40)),
		          count);
		for (unsigned i = 0; i < count; i++)
			expect_eq(slots[i], i);
	}
	inbox_close(&inbox);
}
END_TEST

/* Law 7: the inbox has room for every slot of the hub, even if all pushes come from one CPU. */
START_TEST(full_lanes_give_way_to_others)
{
	static const uint32_t capacities[] = { 1, 255, 256, 257, 512, 700, 1024, 3000 };

	for (unsigned i = 0; i < COUNT_OF(capacities); i++) {
		uint32_t capacity = capacities[i];
		uint32_t *slots = calloc(capacity + 64, sizeof(*slots));
		bool *seen = calloc(capacity, sizeof(*seen));
		struct inbox inbox = { .lanes = NULL };

		expect(slots && seen);
		expect_eq(inbox_open(&inbox, capacity, NULL), 0);
		for (unsigned round = 0; round < 20; round++) {
			expect_context("capacity, round", capacity, round);
			memset(seen, 0, capacity * sizeof(*seen));
			for (uint32_t slot = 0; slot < capacity; slot++)
				(void)inbox_push(&inbox, round, slot);
			expect_eq(look(&inbox, slots, capacity + 64, 32), capacity);
			expect(inbox_empty(&inbox));
			for (uint32_t j = 0; j < capacity; j++) {
				expect_lt(slots[j], capacity);
				expect(!seen[slots[j]]);
				seen[slots[j]] = true;
			}
		}
		inbox_close(&inbox);
		free(slots);
		free(seen);
	}
}
END_TEST

/*
 * If a lane is half full, inbox_push() asks the caller to wake the owner. Only few pushes ask for a
 * wake, because a wake costs more than hundreds of pushes.
 */
START_TEST(half_full_lane_asks_for_the_owner)
{
	struct inbox inbox = { .lanes = NULL };
	uint32_t slots[5000], half;
	unsigned asked = 0;

	expect_eq(inbox_open(&inbox, 200, NULL), 0); /* with 200 slots the inbox has one lane */
	expect_eq(inbox.lane_mask, 0);
	half = 1u << (inbox.lane_shift - 1);
	expect_lt(2 * half, COUNT_OF(slots));
	for (uint32_t i = 0; i < half - 1; i++)
		asked += inbox_push(&inbox, 0, i % 200);
	expect_eq(asked, 0);
	for (uint32_t i = half - 1; i < 2 * half; i++)
		asked += inbox_push(&inbox, 0, i % 200);
	expect_le(1, asked);
	expect_le(asked, 2);
	expect_eq(look(&inbox, slots, COUNT_OF(slots), 32), 2 * half);
	asked = 0;
	for (unsigned round = 0; round < 4 * half; round++) {
		asked += inbox_push(&inbox, 0, 0);
		expect_eq(look(&inbox, slots, COUNT_OF(slots), 32), 1);
	}
	expect_eq(asked, 0);
	inbox_close(&inbox);
}
END_TEST

/*
 * If many entries wait, inbox_push() asks the caller to wake the owner. After the first request for
 * a wake, only few pushes ask for another wake.
 */
START_TEST(many_that_wait_ask_for_the_owner)
{
	enum { MANY = 8192 };
	static uint32_t slots[4 * MANY];

	for (unsigned lanes = 1; lanes <= 2; lanes++) {
		struct inbox inbox = { .lanes = NULL };
		unsigned asked = 0, stride;

		expect_context("lanes used", lanes, 0);
		expect_eq(inbox_open(&inbox, 1 << 25, NULL), 0);
		expect_lt(4 * MANY, 1u << inbox.lane_shift);
		stride = MANY / 4 / (inbox.lane_mask + 1);
		stride = stride > 512 ? stride : 512;
		/*
		 * The owner takes some entries first. inbox_push() must not count the taken
		 * entries.
		 */
		for (uint32_t i = 0; i < stride / 2; i++)
			(void)inbox_push(&inbox, i % lanes, i);
		expect_eq(look(&inbox, slots, COUNT_OF(slots), 64), stride / 2);
		for (uint32_t i = 0; i < 4 * MANY; i++) {
			asked += inbox_push(&inbox, i % lanes, i);
			/*
			 * inbox_push() adds a full cache line for the entries that it does not
			 * count, so the first request may come up to 16 entries early
			 */
			expect(asked == 0 || i >= MANY - 16);
			expect(asked > 0 || i < MANY + 2 * stride);
			expect_le(asked, i / stride + 1);
		}
		expect_eq(look(&inbox, slots, COUNT_OF(slots), 64), 4 * MANY);
		asked = 0;
		for (uint32_t i = 0; i < 4 * MANY; i++) {
			asked += inbox_push(&inbox, i % lanes, i);
			if (i % (MANY / 2) == 0)
				(void)look(&inbox, slots, COUNT_OF(slots), 64);
		}
		/* The owner took all entries after each MANY / 2 pushes, so few entries waited. */
		expect_eq(asked, 0);
		inbox_close(&inbox);
	}
}
END_TEST

/* ---- lanes with chosen lap numbers ---- */

/*
 * Returns an inbox of two lanes with empty cells. The test chooses the lap number that the cells
 * get next.
 */
#define HAND_SHIFT 6
#define HAND_CELLS (UINT64_C(1) << HAND_SHIFT)
#define HAND_LAP_SHIFT 27

static struct inbox_lane hand_lanes[2];
static _Alignas(CACHE_LINE_BYTES) atomic_u64 hand_cells[2][HAND_CELLS];

static struct inbox hand_inbox(uint64_t place)
{
	expect_eq(place % HAND_CELLS, 0);
	memset(hand_lanes, 0, sizeof(hand_lanes));
	for (unsigned i = 0; i < 2; i++) {
		hand_lanes[i].cells = hand_cells[i];
		u64_store_relaxed(&hand_lanes[i].head, place);
		u64_store_relaxed(&hand_lanes[i].tail, place);
		for (unsigned j = 0; j < HAND_CELLS; j++)
			u64_store_relaxed(&hand_cells[i][j], place >> HAND_SHIFT << HAND_LAP_SHIFT);
	}
	return (struct inbox){ .lanes = hand_lanes, .lane_mask = 1, .lane_shift = HAND_SHIFT };
}

/*
 * The lap number of a cell has 37 bits. When the lap number wraps around to 0, a lane works as
 * before, even if the lane is full.
 */
START_TEST(laps_that_come_round_are_laps_like_others)
{
	uint64_t laps = UINT64_C(1) << (64 - HAND_LAP_SHIFT);

	for (uint64_t lap = laps - 3; lap <= laps + 1; lap++) {
		struct inbox inbox = hand_inbox(lap << HAND_SHIFT);
		uint32_t slots[4 * HAND_CELLS];

		expect_context("laps before they come round", laps - lap, 0);
		for (unsigned round = 0; round < 4; round++) {
			/* The last ten pushes find the first lane full and use the second lane. */
			for (uint32_t slot = 0; slot < HAND_CELLS + 10; slot++)
				(void)inbox_push(&inbox, 0, slot);
			expect_eq(look(&inbox, slots, COUNT_OF(slots), 32), HAND_CELLS + 10);
			for (uint32_t i = 0; i < HAND_CELLS + 10; i++)
				expect_eq(slots[i], i);
			expect(inbox_empty(&inbox));
		}
	}
}
END_TEST

/*
 * Law 6: the test delays a producer before the producer reads its first cell. During the delay,
 * other producers push. The delayed producer reads only a few of the cells that were filled during
 * its delay.
 */
static struct {
	struct inbox inbox;
	/* number of pushes that other producers make during the delay; 0 after the delay */
	unsigned pushes;
	unsigned cells; /* number of cells that the delayed producer has read since the delay */
} held;

static void hold_up(enum test_point point)
{
	unsigned pushes = held.pushes;
	uint32_t slots[HAND_CELLS];

	if (point != TEST_POINT_PUSH_AT_CELL)
		return;
	held.cells++;
	held.pushes = 0;
	for (unsigned i = 0; i < pushes; i++) {
		(void)inbox_push(&held.inbox, 0, i);
		if (i % (HAND_CELLS / 2) == 0)
			(void)look(&held.inbox, slots, COUNT_OF(slots), 1);
	}
	if (pushes > 0)
		held.cells = 1;
}

START_TEST(producer_that_was_held_up_finds_the_tail_of_today)
{
	static const unsigned pushes[] = { 1, 7, 8, 9, 40, 1000, 100001 };
	unsigned line = CACHE_LINE_BYTES / sizeof(atomic_u64);

	for (unsigned i = 0; i < COUNT_OF(pushes); i++) {
		uint32_t slots[HAND_CELLS], last = 0;
		unsigned taken;

		expect_context("pushes by others", pushes[i], 0);
		held.inbox = hand_inbox(0);
		held.pushes = pushes[i];
		test_point_hook = hold_up;
		(void)inbox_push(&held.inbox, 0, HAND_CELLS);
		test_point_hook = NULL;
		/*
		 * The producer may read its own cache line and the line of the tail. If that line
		 * is full, the producer may read one more cell.
		 */
		expect_le(held.cells, 2 * line + 1);
		while ((taken = look(&held.inbox, slots, COUNT_OF(slots), 1)) > 0)
			last = slots[taken - 1];
		expect_eq(last, HAND_CELLS);
		expect(inbox_empty(&held.inbox));
	}
}
END_TEST

/* The owner finishes its drain of the inbox although other threads keep pushing. */
START_TEST(look_ends_although_pushes_go_on)
{
	struct inbox inbox = { .lanes = NULL };
	uint32_t slot, pushed = 0;
	unsigned taken = 0;

	expect_eq(inbox_open(&inbox, 200, NULL), 0);
	(void)inbox_push(&inbox, 0, pushed++);
	inbox_begin(&inbox);
	while (inbox_take(&inbox, &slot, 1) == 1) {
		expect_lt(++taken, 100);
		(void)inbox_push(&inbox, 0, pushed++ % 200);
	}
	expect(!inbox_empty(&inbox));
	inbox_close(&inbox);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("inbox", argc, argv);
	tests_add(one_lane_is_first_in_first_out_through_many_laps, 20);
	tests_add(full_lanes_give_way_to_others, 20);
	tests_add(half_full_lane_asks_for_the_owner, 20);
	tests_add(many_that_wait_ask_for_the_owner, 20);
	tests_add(laps_that_come_round_are_laps_like_others, 20);
	tests_add(producer_that_was_held_up_finds_the_tail_of_today, 20);
	tests_add(look_ends_although_pushes_go_on, 20);
	return tests_run();
}
