/* SPDX-License-Identifier: MIT */
/*
 * What the simulation's small inbox does not reach: the ends of its numbers, how many that wait ask
 * for the owner, and threads that stand at the worst places. That a drain returns what was pushed,
 * and nothing else, is the simulation's.
 */
#include "harness.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_point.h"
#include "owner/inbox.h"

#define CELLS UINT64_C(2048) /* of a lane */
#define LAP_SHIFT 27
#define LINE (CACHE_LINE_BYTES / sizeof(atomic_u64))
#define SLOTS_MAX ((1u << 26) - 2)

/* Which the owner must find, and how often it has. */
static struct {
	unsigned char *waits;
	uint64_t taken;
} model;

/* Takes all slots, `batch` at a time. Each must be one that the test has pushed. */
static void drain(struct inbox *inbox, unsigned batch)
{
	uint32_t slots[64];
	unsigned count;

	inbox_begin(inbox);
	while ((count = inbox_take(inbox, slots, batch)) > 0) {
		expect_le(count, batch);
		for (unsigned i = 0; i < count; i++) {
			expect(model.waits[slots[i]]);
			model.waits[slots[i]] = 2;
		}
		model.taken += count;
	}
	expect(inbox_empty(inbox));
}

static void model_open(uint32_t capacity)
{
	model.waits = calloc(capacity, 1);
	model.taken = 0;
	expect(model.waits);
}

static void expect_all_taken(uint32_t capacity)
{
	for (uint32_t slot = 0; slot < capacity; slot++) {
		expect_context("slot", slot, 0);
		expect(model.waits[slot] != 1);
		model.waits[slot] = 0;
	}
}

/* The ends of the map: its first and last words on each level. */
TEST(map_reaches_every_slot, 20)
{
	struct inbox inbox = { .lanes = NULL };

	expect_eq(inbox_open(&inbox, SLOTS_MAX, NULL), 0);
	expect_eq(inbox.map.top_words, 256);
	for (uint64_t step = 1; step < SLOTS_MAX; step *= 2)
		for (unsigned end = 0; end < 2; end++) {
			uint32_t slot = (uint32_t)(end == 0 ? step : SLOTS_MAX - step), taken[2];

			(void)inbox_push_again(&inbox, 0, slot);
			(void)inbox_push_again(&inbox, 1, slot);
			expect(!inbox_empty(&inbox));
			inbox_begin(&inbox);
			expect_eq(inbox_take(&inbox, taken, 2), 1);
			expect_eq(taken[0], slot);
			expect_eq(inbox_take(&inbox, taken, 2), 0);
			expect(inbox_empty(&inbox));
		}
	inbox_close(&inbox);
}

/*
 * When about 8,192 slots wait, a push asks its caller to wake the owner. At most one push in 512
 * asks, because a wake-up costs more than hundreds of them. A slot in the bitmap counts once.
 */
TEST(many_that_wait_ask_for_the_owner, 20)
{
	enum { MANY = 8192, ASK = 512 };

	for (unsigned round = 0; round < 6; round++) {
		struct inbox inbox = { .lanes = NULL };
		unsigned lanes = 1 + round % 2, asked = 0;
		bool again = round >= 2;

		expect_context("round", round, 0);
		expect_eq(inbox_open(&inbox, 1 << 16, NULL), 0);
		model_open(1 << 16);
		memset(model.waits, 1, 1 << 16);
		for (uint32_t i = 0; i < 4 * MANY; i++) {
			bool asks = again ? inbox_push_again(&inbox, i % lanes, i)
			                  : inbox_push(&inbox, i % lanes, i);

			asked += asks;
			expect(!asks || i + LINE * lanes + 1 >= MANY);
			expect(asked > 0 || i < MANY + ASK * lanes);
			expect_le(asked, 1 + (i + 1) / ASK);
		}
		for (uint32_t i = 0; again && i < 4 * MANY; i++)
			expect(!inbox_push_again(&inbox, 0, i));
		drain(&inbox, 32);
		asked = 0;
		for (uint32_t i = 0; i < 4 * MANY; i++) {
			asked += inbox_push(&inbox, i % lanes, i);
			if (i % (MANY / 2) == 0)
				drain(&inbox, 32);
		}
		expect_eq(asked, 0);
		free(model.waits);
		inbox_close(&inbox);
	}
}

/* The cells' lap numbers have 37 bits. */
TEST(laps_that_come_round_are_laps_like_others, 20)
{
	uint64_t laps = UINT64_C(1) << (64 - LAP_SHIFT);

	for (uint64_t lap = laps - 2; lap <= laps; lap++) {
		struct inbox inbox = { .lanes = NULL };

		expect_context("laps before they come round", laps - lap, 0);
		expect_eq(inbox_open(&inbox, CELLS + 10, NULL), 0);
		model_open(CELLS + 10);
		for (uint32_t i = 0; i <= inbox.lane_mask; i++) {
			u64_store_relaxed(&inbox.lanes[i].head, lap * CELLS);
			u64_store_relaxed(&inbox.lanes[i].tail, lap * CELLS);
			for (unsigned j = 0; j < CELLS; j++)
				u64_store_relaxed(&inbox.lanes[i].cells[j], lap << LAP_SHIFT);
		}
		for (unsigned round = 0; round < 4; round++) {
			for (uint32_t slot = 0; slot < CELLS + 10; slot++) {
				(void)inbox_push(&inbox, 0, slot);
				model.waits[slot] = 1;
			}
			drain(&inbox, 32);
			expect_all_taken(CELLS + 10);
			expect_eq(model.taken, (CELLS + 10) * (round + 1));
		}
		free(model.waits);
		inbox_close(&inbox);
	}
}

/* A producer is delayed before its first cell while others push. Then it reads few filled cells. */
static struct {
	struct inbox inbox;
	unsigned pushes; /* number of pushes during the delay; 0 after the delay */
	unsigned cells;  /* number of cells that the delayed producer has read since */
} held;

static void hold_up(enum test_point point)
{
	unsigned pushes = held.pushes;

	if (point != TEST_POINT_PUSH_AT_CELL)
		return;
	held.cells++;
	held.pushes = 0;
	for (unsigned i = 0; i < pushes; i++) {
		(void)inbox_push(&held.inbox, 0, i % 200);
		model.waits[i % 200] = 1;
		if (i % 1000 == 999)
			drain(&held.inbox, 1);
	}
	if (pushes > 0)
		held.cells = 1;
}

TEST(producer_that_was_held_up_finds_the_tail_of_today, 20)
{
	static const unsigned pushes[] = { 1, 7, 8, 9, 40, 1000, 2047, 2049, 100001 };

	for (unsigned i = 0; i < COUNT_OF(pushes); i++) {
		expect_context("pushes by others", pushes[i], 0);
		held.inbox = (struct inbox){ .lanes = NULL };
		expect_eq(inbox_open(&held.inbox, 201, NULL), 0);
		model_open(201);
		held.pushes = pushes[i];
		test_point_hook = hold_up;
		(void)inbox_push(&held.inbox, 0, 200);
		test_point_hook = NULL;
		/* two cache lines of cells at most, and then one cell or three words of the map */
		expect_le(held.cells, 2 * LINE + INBOX_LEVELS);
		model.waits[200] = 1;
		drain(&held.inbox, 1);
		expect_all_taken(201);
		free(model.waits);
		inbox_close(&held.inbox);
	}
}

/*
 * Before inbox_waits() reads a word of the bitmap, the owner takes no slot, one or all. Then
 * another thread sets none to all of the slot's bits, bottom level first, and stops, or it pushes a
 * neighbour, which shares upper bits with the slot.
 */
enum { OWNER_RESTS, OWNER_TAKES_ONE, OWNER_TAKES_ALL, OWNER_DEEDS };
enum { THIRD_SETS_ALL = INBOX_LEVELS, THIRD_PUSHES_NEAR, THIRD_PUSHES_FAR, THIRD_DEEDS };
#define ASKED_SLOT 200u
#define ASKED_NEAR 201u /* in the same word of level 0 */
#define ASKED_FAR 300u  /* in the same word of level 1 */

static struct {
	struct inbox inbox;
	unsigned deeds[3]; /* to do before the first word, before the second and before the third */
	unsigned word;
	bool found; /* the owner has taken the slot since the first deed */
} asked;

static void asked_take(unsigned max)
{
	uint32_t slot;

	for (; max > 0 && inbox_take(&asked.inbox, &slot, 1) > 0; max--)
		asked.found |= slot == ASKED_SLOT;
}

static void asked_do(unsigned deed)
{
	unsigned owner = deed % OWNER_DEEDS, third = deed / OWNER_DEEDS, index = ASKED_SLOT;

	if (owner == OWNER_TAKES_ONE)
		asked_take(1);
	if (owner == OWNER_TAKES_ALL) {
		asked_take(UINT_MAX);
		inbox_begin(&asked.inbox);
		asked_take(UINT_MAX);
		inbox_begin(&asked.inbox);
	}
	for (unsigned level = 0; level < third && third <= THIRD_SETS_ALL; level++) {
		(void)u64_fetch_or_seq_cst(&asked.inbox.map.words[level][index / INBOX_WORD],
		                           UINT64_C(1) << index % INBOX_WORD);
		index /= INBOX_WORD;
	}
	if (third > THIRD_SETS_ALL)
		(void)inbox_push_again(&asked.inbox, 0,
		                       third == THIRD_PUSHES_NEAR ? ASKED_NEAR : ASKED_FAR);
}

static void asked_go_on(enum test_point point)
{
	if (point == TEST_POINT_WAITS_READ_WORD && ++asked.word < COUNT_OF(asked.deeds))
		asked_do(asked.deeds[asked.word]);
}

/* If inbox_waits() returns true, the owner finds the slot, even if its producer stops halfway. */
TEST(slot_that_waits_is_found_whoever_stands_between_its_bits, 20)
{
	const unsigned deeds = OWNER_DEEDS * THIRD_DEEDS;
	unsigned waited = 0;

	expect_eq(inbox_open(&asked.inbox, 10000, NULL), 0);
	for (unsigned way = 0; way < deeds * deeds * deeds; way++) {
		asked.deeds[0] = way % deeds;
		asked.deeds[1] = way / deeds % deeds;
		asked.deeds[2] = way / deeds / deeds;
		asked.word = 0;
		inbox_begin(&asked.inbox);
		asked_do(asked.deeds[0]);
		asked.found = false;
		test_point_hook = asked_go_on;
		if (inbox_waits(&asked.inbox, ASKED_SLOT)) {
			test_point_hook = NULL;
			waited++;
			asked_do(OWNER_TAKES_ALL);
			expect_context("deeds", way, 0);
			expect(asked.found);
		}
		/* the producer that stopped halfway sets all bits, and the owner takes all slots */
		test_point_hook = NULL;
		asked_do(THIRD_SETS_ALL * OWNER_DEEDS);
		asked_do(OWNER_TAKES_ALL);
	}
	expect_lt(100, waited);
	inbox_close(&asked.inbox);
}

/* A drain ends although slots are pushed into the lanes and the map as fast as it takes them. */
TEST(drain_ends_although_pushes_go_on, 20)
{
	struct inbox inbox = { .lanes = NULL };
	uint32_t slot = 0, capacity = 10000;
	unsigned taken = 0;

	expect_eq(inbox_open(&inbox, capacity, NULL), 0);
	for (unsigned i = 0; i < 3 * CELLS; i++)
		(void)inbox_push(&inbox, 0, i);
	inbox_begin(&inbox);
	while (inbox_take(&inbox, &slot, 1) == 1) {
		expect_lt(++taken, CELLS + LINE + capacity);
		(void)inbox_push(&inbox, 0, slot);
		(void)inbox_push_again(&inbox, 0, (slot + 1) % capacity);
		(void)inbox_push_again(&inbox, 0, slot);
	}
	expect(!inbox_empty(&inbox));
	inbox_close(&inbox);
}
