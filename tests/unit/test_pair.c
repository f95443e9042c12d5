/* SPDX-License-Identifier: MIT */
/*
 * Pair and handle: every phase with every flag, with fields computed by division; the k-th period
 * against first deadline + k x interval; slack against a search of all powers of two.
 */
#include "harness.h"

#include "pair_fields.h"
#include "timer/pair.h"

#define MAX_NS ((UINT64_C(1) << 63) - 128)
#define NEVER UINT64_MAX
#define GENERATION_MAX ((UINT64_C(1) << 38) - 1)
#define SLACK_MAX_NS ((UINT64_C(1) << 48) - 1)

static const uint64_t some_ns[] = { 0, 1, 1000, MAX_NS, NEVER };

static void expect_parts(struct pair pair, struct parts parts)
{
	expect_eq(pair.deadline_ns, parts.deadline_ns);
	expect_eq(pair.state, parts_pair(parts).state);
}

/* Calls `test` with every phase and flag, and with some deadlines and generations. */
static void for_every_pair(void (*test)(struct pair pair))
{
	static const uint64_t generations[] = { 0, 1, GENERATION_MAX };

	for (unsigned i = 0; i < COUNT_OF(some_ns) * 3 * 16 * 5; i++) {
		struct pair pair = parts_pair((struct parts){
			.deadline_ns = some_ns[i / 3 / 16 / 5],
			.generation = generations[i % 3],
			.phase = i / 3 % 5,
		});

		pair.state += i / 3 / 5 % 16 * 8;
		expect_context("deadline, state", pair.deadline_ns, pair.state);
		test(pair);
	}
}

static void check_questions(struct pair pair)
{
	struct parts parts = parts_of(pair);
	uint64_t state = pair.state;

	expect_parts(pair, parts);
	expect_eq(state_phase(state), parts.phase);
	expect_eq(state_claimed(state), parts.claimed == 1);
	expect_eq(state_periodic(state), parts.periodic == 1);
	expect_eq(state_has_slack(state), parts.slack == 1);
	expect_eq(state_kept(state), parts.kept == 1);
	expect_eq(state_generation(state), parts.generation);
	expect_eq(state_undelivered(state),
	          parts.phase == TIMER_PENDING || parts.phase == TIMER_OVERDUE);
}

TEST(questions_are_answered_by_their_bits_alone, 20)
{
	for_every_pair(check_questions);
}

/* Only the generation decides whether a handle belongs to a pair. */
static void check_whose(struct pair pair)
{
	static const uint64_t slots[] = { 0, 1, 8, TIMER_SLOTS_MAX - 1 };
	struct parts parts = parts_of(pair);

	for (unsigned bit = 0; bit <= 38; bit++)
		for (unsigned i = 0; i < COUNT_OF(slots); i++) {
			uint64_t other =
				bit < 38 ? parts.generation ^ UINT64_C(1) << bit : parts.generation;
			uint64_t handle = other * 67108864 + slots[i];
			bool same = other == parts.generation;

			expect_eq(state_is_of(pair.state, handle),
			          same && parts.phase != TIMER_FREE);
			expect_eq(state_is_armed(pair.state, handle, 0),
			          same && parts.phase == TIMER_ARMED);
			expect_eq(state_is_armed(pair.state, handle, STATE_CLAIMED),
			          same && parts.phase == TIMER_ARMED && !parts.claimed);
			if (same)
				expect_eq(handle_of(pair.state, (uint32_t)slots[i]), handle);
		}
}

TEST(a_timer_is_of_the_handle_with_its_generation_until_it_ends, 60)
{
	for_every_pair(check_whose);
}

/* ---- periods ---- */

/* First deadline + k x interval, or NEVER, however late deliveries are. */
static void check_drift(struct dice *dice, uint64_t first_ns, uint64_t interval_ns)
{
	uint64_t deadline_ns = first_ns, k = 0;

	expect_context("first, interval", first_ns, interval_ns);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t now_ns = deadline_ns + dice_magnitude(dice, 55);
		unsigned __int128 exact_ns;

		k += period_count(deadline_ns, interval_ns, now_ns);
		exact_ns = first_ns + (unsigned __int128)k * interval_ns;
		deadline_ns = period_next_ns(deadline_ns, interval_ns, now_ns);
		expect_eq(deadline_ns, exact_ns <= MAX_NS ? (uint64_t)exact_ns : NEVER);
		if (deadline_ns == NEVER)
			return;
		expect_lt(now_ns, deadline_ns);
		expect_le(deadline_ns - now_ns, interval_ns);
	}
}

TEST(periods_are_exact_up_to_the_latest_deadline, 60)
{
	struct dice dice = dice_new(3);

	for (unsigned i = 0; i < 30000; i++) {
		unsigned bits = 1 + (unsigned)dice_below(&dice, 63);

		check_drift(&dice, dice_magnitude(&dice, bits), 1 + dice_magnitude(&dice, 50));
		check_drift(&dice, MAX_NS - dice_magnitude(&dice, bits),
		            1 + dice_magnitude(&dice, bits));
	}
}

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
		{ MAX_NS, MAX_NS, 2 * MAX_NS, NEVER, 2 },
		{ 1, 1, UINT64_MAX, NEVER, UINT64_MAX },
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

/* ---- handles, queues ---- */

TEST(generations_go_round_without_zero, 20)
{
	expect_eq(generation_next(0), 1);
	expect_eq(generation_next(1), 2);
	expect_eq(generation_next(GENERATION_MAX - 1), GENERATION_MAX);
	expect_eq(generation_next(GENERATION_MAX), 1);
}

TEST(handles_hold_slot_and_generation, 20)
{
	struct dice dice = dice_new(5);

	expect_lt(TIMER_SLOTS_MAX, 67108864);
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t slot = (uint32_t)(dice_magnitude(&dice, 26) % TIMER_SLOTS_MAX);
		uint64_t generation = dice_magnitude(&dice, 38);
		uint64_t handle = handle_make(generation, slot);

		expect_eq(handle, generation * 67108864 + slot);
		expect_eq(handle_slot(handle), slot);
		expect_eq(handle >> 26, generation);
	}
}

TEST(queue_and_slack_are_kept_and_slack_saturates, 20)
{
	struct dice dice = dice_new(6);

	for (unsigned i = 0; i < 100000; i++) {
		uint32_t queue = (uint32_t)dice_below(&dice, 65536);
		uint64_t slack_ns = dice_magnitude(&dice, 64);
		uint64_t both = queue_slack_make(queue, slack_ns);

		expect_eq(queue_slack_queue(both), queue);
		expect_eq(queue_slack_slack_ns(both),
		          slack_ns < SLACK_MAX_NS ? slack_ns : SLACK_MAX_NS);
	}
}

/* Returns a random deadline of any size, up to the largest deadline. */
static uint64_t some_deadline_ns(struct dice *dice)
{
	return dice_one_in(dice, 8) ? MAX_NS - dice_magnitude(dice, 30) : dice_magnitude(dice, 63);
}

/*
 * The first multiple at or after the deadline, within the slack, of the largest power of two that
 * has one.
 */
static uint64_t slow_slacken_ns(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last_ns = deadline_ns + slack_ns;

	if (last_ns > MAX_NS)
		last_ns = MAX_NS;
	for (uint64_t step = (uint64_t)1 << 62; step > 0; step /= 2) {
		uint64_t multiple_ns = (deadline_ns + step - 1) / step * step;

		if (multiple_ns <= last_ns)
			return multiple_ns;
	}
	return deadline_ns;
}

TEST(slack_picks_the_instant_with_most_trailing_zeros, 20)
{
	struct dice dice = dice_new(7);

	for (uint64_t deadline_ns = 0; deadline_ns < 700; deadline_ns++)
		for (uint64_t slack_ns = 0; slack_ns < 130; slack_ns++)
			expect_eq(timer_slacken_ns(deadline_ns, slack_ns),
			          slow_slacken_ns(deadline_ns, slack_ns));
	for (unsigned i = 0; i < 300000; i++) {
		uint64_t deadline_ns = some_deadline_ns(&dice);
		uint64_t slack_ns = dice_magnitude(&dice, 48);
		uint64_t at_ns = timer_slacken_ns(deadline_ns, slack_ns);

		expect_context("deadline, slack", deadline_ns, slack_ns);
		expect_eq(at_ns, slow_slacken_ns(deadline_ns, slack_ns));
		expect_le(deadline_ns, at_ns);
		expect_le(at_ns - deadline_ns, slack_ns);
		expect_le(at_ns, MAX_NS);
	}
	expect_eq(timer_slacken_ns(NEVER, 5), NEVER);
	expect_eq(timer_slacken_ns(MAX_NS, SLACK_MAX_NS), MAX_NS);
}

/* The owner relies on it. */
TEST(slack_is_monotone_in_the_deadline, 20)
{
	struct dice dice = dice_new(8);

	for (uint64_t slack_ns = 0; slack_ns < 130; slack_ns++)
		for (uint64_t deadline_ns = 0; deadline_ns < 1500; deadline_ns++)
			expect_le(timer_slacken_ns(deadline_ns, slack_ns),
			          timer_slacken_ns(deadline_ns + 1, slack_ns));
	for (unsigned i = 0; i < 300000; i++) {
		uint64_t slack_ns = dice_magnitude(&dice, 48);
		uint64_t a_ns = some_deadline_ns(&dice);
		uint64_t b_ns = a_ns + dice_magnitude(&dice, 50);

		expect_context("deadline, slack", a_ns, slack_ns);
		if (b_ns > MAX_NS)
			b_ns = MAX_NS;
		expect_le(timer_slacken_ns(a_ns, slack_ns), timer_slacken_ns(b_ns, slack_ns));
	}
}
