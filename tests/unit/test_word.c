/* SPDX-License-Identifier: MIT */
/*
 * The state word and the identity: every transition, from every state, against a word taken apart
 * by division; deadlines to 2^63; slack, against trying every power of two.
 */
#include "harness.h"

#include "parts.h"
#include "word.h"

static const uint64_t some_ticks[] = { 0,
	                               1,
	                               2,
	                               63,
	                               64,
	                               65,
	                               (1 << 18) - 1,
	                               1 << 18,
	                               (UINT64_C(1) << 54) - 1,
	                               UINT64_C(1) << 56,
	                               TIMER_TICKS_NEVER - 1,
	                               TIMER_TICKS_NEVER };

/* Some identities. */
#define ONE_SHOT identity_make(7, 0)
#define SLACK identity_make(7, IDENTITY_SLACK)
#define PERIODIC identity_make(7, IDENTITY_PERIODIC)

static void expect_parts(uint64_t word, struct parts parts)
{
	expect_eq(word, parts_word(parts));
	expect_eq(word_deadline(word), parts.ticks);
	expect_eq(word_tag(word), parts.tag);
	expect_eq(word_pushed(word), parts.pushed == 1);
	expect_eq(word_claimed(word), parts.inbox == 1);
	expect_eq(word_phase(word), parts.phase);
}

/* Calls `test` with every phase, flag, tag and interesting deadline. */
static void for_every_word(void (*test)(uint64_t word))
{
	for (unsigned i = 0; i < COUNT_OF(some_ticks); i++) {
		for (unsigned low = 0; low < 128; low++) {
			uint64_t word = some_ticks[i] * 128 + low;

			expect_parts(word, parts_of(word));
			test(word);
		}
	}
}

static void check_rearmed(uint64_t word)
{
	for (unsigned i = 0; i < COUNT_OF(some_ticks); i++) {
		struct parts parts = parts_of(word);

		parts.ticks = some_ticks[i];
		parts.phase = TIMER_ARMED;
		expect_parts(word_rearmed(word, some_ticks[i]), parts);
	}
}

START_TEST(rearmed_changes_deadline_and_phase_alone)
{
	for_every_word(check_rearmed);
}
END_TEST

static void check_with_phase(uint64_t word)
{
	for (unsigned phase = 0; phase < 4; phase++) {
		struct parts parts = parts_of(word);

		parts.phase = phase;
		expect_parts(word_with_phase(word, (enum timer_phase)phase), parts);
	}
}

START_TEST(with_phase_changes_the_phase_alone)
{
	for_every_word(check_with_phase);
}
END_TEST

/* A new life: it is to be in the inbox, and has been pushed if the free slot's word says so. */
static void check_armed(uint64_t word)
{
	for (unsigned i = 0; i < COUNT_OF(some_ticks); i++) {
		struct parts parts = parts_of(word);

		parts.ticks = some_ticks[i];
		parts.tag = (parts.tag + 1) % 8;
		parts.inbox = 1;
		parts.phase = TIMER_ARMED;
		expect_parts(word_armed(word, some_ticks[i]), parts);
	}
}

START_TEST(armed_is_a_new_life_in_the_inbox)
{
	for_every_word(check_armed);
}
END_TEST

/* Delivered and kept: parked for never, as no periodic timer is. */
static void check_idle(uint64_t word)
{
	struct parts parts = parts_of(word);
	bool idles = parts.phase == TIMER_PARKED && parts.ticks == TIMER_TICKS_NEVER;

	expect_eq(word_idles(word), idles);
	expect_eq(word_undelivered(word),
	          parts.phase == TIMER_PENDING || (parts.phase == TIMER_PARKED && !idles));
	parts.phase = TIMER_PARKED;
	parts.ticks = TIMER_TICKS_NEVER;
	expect_parts(word_idle(word), parts);
	expect(word_idles(word_idle(word)));
}

START_TEST(idle_is_parked_for_never)
{
	for_every_word(check_idle);
}
END_TEST

/* The tag and the push stay, the owner is to look, and what had expired is armed. */
static void check_restored(uint64_t before)
{
	for (unsigned low = 0; low < 128; low++) {
		uint64_t word = some_ticks[low % COUNT_OF(some_ticks)] * 128 + low;
		struct parts parts = parts_of(word);

		parts.ticks = word_deadline(before);
		parts.phase = word_idles(before) ? TIMER_PARKED : TIMER_ARMED;
		parts.inbox = 1;
		expect_parts(word_restored(word, before), parts);
	}
}

START_TEST(restored_is_as_before_and_looked_at)
{
	for_every_word(check_restored);
}
END_TEST

static void check_looked_at(uint64_t word)
{
	uint64_t deadline = word_deadline(word);
	struct parts parts = { .ticks = deadline,
		               .tag = (word / 16 + 1) % 8,
		               .phase = word_phase(word) };

	if (word_phase(word) == TIMER_FREE) /* and files it nowhere */
		parts.ticks = deadline = TIMER_TICKS_NEVER;
	expect_parts(word_looked_at(word, ONE_SHOT), parts);
	expect_parts(word_looked_at(word, SLACK), parts);
	if (deadline != TIMER_TICKS_NEVER && deadline >= TIMER_TICKS_FRESH)
		parts.ticks -= TIMER_TICKS_FRESH;
	expect_parts(word_looked_at(word, PERIODIC), parts);
}

START_TEST(looked_at_is_out_of_the_inbox_and_no_word_seen_before)
{
	for_every_word(check_looked_at);
}
END_TEST

/* A re-armed periodic timer's deadline is fresh, unless that is never, until the owner looks. */
static void check_fresh(uint64_t word)
{
	uint64_t deadline_ns = word % 3 == 0 ? UINT64_MAX : word % TIMER_PERIODIC_MAX_NS;
	uint64_t fresh = word_rearmed(word, ticks_fresh(deadline_ns));
	uint64_t settled = word_rearmed(word, ticks_from_ns(deadline_ns));

	expect_eq(word_fresh(fresh, PERIODIC), deadline_ns != UINT64_MAX);
	expect_eq(word_fresh(fresh, PERIODIC | IDENTITY_SLACK), deadline_ns != UINT64_MAX);
	expect(!word_fresh(settled, PERIODIC));
	expect(!word_fresh(fresh, ONE_SHOT));
	expect_eq(timer_deadline_ns(fresh, PERIODIC), timer_deadline_ns(settled, ONE_SHOT));
	expect_eq(word_looked_at(fresh, PERIODIC), word_looked_at(settled, ONE_SHOT));
}

START_TEST(fresh_is_an_armed_word_of_the_same_deadline)
{
	for_every_word(check_fresh);
	expect_eq(TIMER_PERIODIC_MAX_NS, ((uint64_t)1 << 62) - 128);
	expect(word_fresh(word_rearmed(0, ticks_fresh(TIMER_PERIODIC_MAX_NS)), PERIODIC));
	expect_eq(timer_deadline_ns(word_rearmed(0, ticks_fresh(TIMER_PERIODIC_MAX_NS)), PERIODIC),
	          TIMER_PERIODIC_MAX_NS);
	expect_eq(timer_deadline_ns(word_rearmed(0, ticks_fresh(0)), PERIODIC), 0);
}
END_TEST

static void check_ticks_of(uint64_t deadline_ns)
{
	uint64_t ticks = ticks_from_ns(deadline_ns);
	uint64_t word = word_armed(0, ticks);

	expect_eq(ticks, deadline_ns / 64 + (deadline_ns % 64 > 0));
	expect_lt(ticks, TIMER_TICKS_NEVER);
	expect_le(deadline_ns, timer_deadline_ns(word, ONE_SHOT));
	expect_lt(timer_deadline_ns(word, ONE_SHOT) - deadline_ns, 64);
	if (deadline_ns <= TIMER_PERIODIC_MAX_NS)
		expect_eq(timer_deadline_ns(word, PERIODIC), timer_deadline_ns(word, ONE_SHOT));
}

START_TEST(deadlines_are_rounded_up_to_the_tick_and_never_is_never)
{
	struct dice dice = dice_new(1);

	for (unsigned k = 0; k < 63; k++)
		for (uint64_t i = 0; i < 130; i++)
			check_ticks_of(((uint64_t)1 << k) - (k > 6 ? 65 : 0) + i);
	for (unsigned i = 0; i < 100000; i++)
		check_ticks_of(dice_magnitude(&dice, 62));
	for (uint64_t i = 0; i < 200; i++)
		check_ticks_of(TIMER_DEADLINE_MAX_NS - i);
	expect_eq(TIMER_DEADLINE_MAX_NS, ((uint64_t)1 << 63) - 128);
	expect_eq(ticks_from_ns(UINT64_MAX), TIMER_TICKS_NEVER);
	expect_eq(timer_deadline_ns(word_armed(0, TIMER_TICKS_NEVER), ONE_SHOT), UINT64_MAX);
	expect_eq(timer_deadline_ns(word_armed(0, TIMER_TICKS_NEVER), PERIODIC), UINT64_MAX);
}
END_TEST

/* A deadline as the tests below want it: any size, the largest among them. */
static uint64_t some_deadline_ns(struct dice *dice)
{
	switch (dice_below(dice, 8)) {
	case 0:
		return TIMER_DEADLINE_MAX_NS - dice_magnitude(dice, 30);
	case 1:
		return dice_boundary(dice);
	default:
		return dice_magnitude(dice, 63) % (TIMER_DEADLINE_MAX_NS + 1);
	}
}

START_TEST(identities_hold_generation_and_flags)
{
	static const uint64_t some_flags[] = { 0, IDENTITY_PERIODIC, IDENTITY_SLACK,
		                               IDENTITY_PERIODIC | IDENTITY_SLACK };
	struct dice dice = dice_new(2);

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t generation = dice_roll(&dice) & TIMER_GENERATION_MASK;
		uint64_t which = dice_below(&dice, 4);
		uint64_t identity = identity_make(generation, some_flags[which]);

		expect_eq(identity_generation(identity), generation);
		expect_eq(identity_periodic(identity), which % 2 == 1);
		expect_eq(identity_has_slack(identity), which / 2 == 1);
		/* What a plain re-arm compares. */
		expect_eq(identity == identity_make(generation, 0), which == 0);
	}
}
END_TEST

/* The periods of a timer, one after the other. */
struct slow_periods {
	uint64_t base_ns, interval_ns;
};

static uint64_t slow_tick_ns(const struct slow_periods *periods, uint64_t k)
{
	uint64_t due_ns = periods->base_ns + k * periods->interval_ns;

	return due_ns + (64 - due_ns % 64) % 64;
}

static void check_periods(const struct slow_periods *periods, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t k = 0, count = 0;

	expect_context("interval, base", periods->interval_ns, periods->base_ns);
	expect_context("deadline, now", deadline_ns, now_ns);
	while (slow_tick_ns(periods, k) < deadline_ns)
		k++;
	for (; slow_tick_ns(periods, k) <= now_ns; k++)
		count++;
	expect_eq(period_count(periods->base_ns, periods->interval_ns, deadline_ns, now_ns), count);
	expect_eq(period_next_ns(periods->base_ns, periods->interval_ns, now_ns),
	          slow_tick_ns(periods, k));
}

/* Each of the first periods may be the one in the word, whatever the time has come to be. */
static void check_first_periods(const struct slow_periods *periods)
{
	for (uint64_t k = 0; k < 20; k++) {
		uint64_t deadline_ns = slow_tick_ns(periods, k);

		for (uint64_t past_ns = 0; past_ns < 400; past_ns += 1 + past_ns / 70 * 7)
			check_periods(periods, deadline_ns, deadline_ns + past_ns);
	}
}

START_TEST(periods_are_counted_from_their_base_whatever_the_interval)
{
	static const uint64_t bases_ns[] = { 0, 1, 63, 64, 65, 100, 127, 12800, 99999 };

	for (uint64_t interval_ns = 1; interval_ns < 200; interval_ns += 1 + interval_ns / 70 * 3)
		for (unsigned i = 0; i < COUNT_OF(bases_ns); i++) {
			struct slow_periods periods = { bases_ns[i], interval_ns };

			check_first_periods(&periods);
		}
}
END_TEST

/* Delivered late, again and again, the k-th deadline is where it would be if none had been late. */
START_TEST(phase_does_not_drift)
{
	struct dice dice = dice_new(3);

	for (unsigned i = 0; i < 3000; i++) {
		uint64_t base_ns = dice_magnitude(&dice, 61);
		uint64_t interval_ns = 1 + dice_magnitude(&dice, 50);
		uint64_t deadline_ns = ticks_from_ns(base_ns) * 64;
		uint64_t k = 0;

		for (unsigned j = 0; j < 50; j++) {
			uint64_t now_ns = deadline_ns + dice_magnitude(&dice, 55);

			k += period_count(base_ns, interval_ns, deadline_ns, now_ns);
			deadline_ns = period_next_ns(base_ns, interval_ns, now_ns);
			expect_context("interval, base", interval_ns, base_ns);
			expect_eq(deadline_ns, ticks_from_ns(base_ns + k * interval_ns) * 64);
			expect_lt(now_ns, deadline_ns);
		}
	}
}
END_TEST

START_TEST(periods_past_the_end_of_time_are_never)
{
	uint64_t max_ns = TIMER_PERIODIC_MAX_NS;

	expect_eq(period_next_ns(max_ns - 64, 64, max_ns - 64), max_ns);
	expect_eq(period_next_ns(max_ns - 64, 1, max_ns - 64), max_ns);
	expect_eq(period_next_ns(max_ns - 64, 65, max_ns - 64), UINT64_MAX);
	expect_eq(period_next_ns(max_ns, 1, max_ns), UINT64_MAX);
	expect_eq(period_next_ns(0, TIMER_DEADLINE_MAX_NS, 0), UINT64_MAX);
	expect_eq(period_next_ns(max_ns, TIMER_DEADLINE_MAX_NS, UINT64_MAX - 1), UINT64_MAX);
	expect_eq(period_next_ns(1, 1, UINT64_MAX), UINT64_MAX);
	expect_eq(period_count(0, 1, 0, UINT64_MAX), UINT64_MAX - 62);
	expect_eq(period_count(max_ns, TIMER_DEADLINE_MAX_NS, max_ns, UINT64_MAX), 2);
}
END_TEST

START_TEST(generations_go_round_without_zero)
{
	expect_eq(generation_next(0, false), 2);
	expect_eq(generation_next(0, true), 3);
	expect_eq(generation_next(2, false), 4);
	expect_eq(generation_next(3, true), 5);
	expect_eq(generation_next(TIMER_GENERATION_MASK - 2, true), TIMER_GENERATION_MASK);
	expect_eq(generation_next(TIMER_GENERATION_MASK - 1, false), 2);
	expect_eq(generation_next(TIMER_GENERATION_MASK, true), 1);
	expect_eq(generation_next(TIMER_GENERATION_MASK, false), 2);
}
END_TEST

START_TEST(handles_hold_slot_and_generation_and_are_never_zero)
{
	struct dice dice = dice_new(5);

	for (unsigned i = 0; i < 100000; i++) {
		uint32_t slot = (uint32_t)(dice_magnitude(&dice, 26) % TIMER_SLOTS_MAX);
		bool kept = dice_below(&dice, 2) == 0;
		uint64_t generation = generation_next(dice_magnitude(&dice, 38), kept);
		uint64_t handle = handle_make(generation, slot);

		expect_eq(handle_slot(handle), slot);
		expect_eq(handle_generation(handle), generation);
		expect_eq(handle_kept(handle), kept);
		expect(handle != 0);
	}
}
END_TEST

/* A handle is of this life only if the generations agree and the life is not over. */
static void check_timer_is(uint64_t word)
{
	for (uint64_t generation = 1; generation < 34; generation++) {
		uint64_t identity = identity_make(generation, generation % 4);

		for (uint64_t other = 1; other < 34; other++) {
			bool same = word % 4 != TIMER_FREE && other == generation;

			expect_eq(timer_is(word, identity, handle_make(other, 99)), same);
		}
	}
}

START_TEST(handles_of_another_life_are_told_apart)
{
	for_every_word(check_timer_is);
}
END_TEST

START_TEST(queue_and_slack_are_kept_and_slack_saturates)
{
	struct dice dice = dice_new(6);

	for (unsigned i = 0; i < 100000; i++) {
		uint32_t queue = (uint32_t)dice_below(&dice, 65536);
		uint64_t slack_ns = dice_magnitude(&dice, 64);
		uint64_t both = queue_slack_make(queue, slack_ns);

		expect_eq(queue_slack_queue(both), queue);
		expect_eq(queue_slack_slack_ns(both),
		          slack_ns < TIMER_SLACK_MAX_NS ? slack_ns : TIMER_SLACK_MAX_NS);
	}
}
END_TEST

/* The obvious way: the largest power of two that has a multiple in the window. */
static uint64_t slow_slacken_ns(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last_ns = deadline_ns + slack_ns;

	if (last_ns > TIMER_DEADLINE_MAX_NS)
		last_ns = TIMER_DEADLINE_MAX_NS;
	for (uint64_t step = (uint64_t)1 << 62; step > 0; step /= 2) {
		uint64_t multiple_ns = (deadline_ns + step - 1) / step * step;

		if (multiple_ns <= last_ns)
			return multiple_ns;
	}
	return deadline_ns;
}

START_TEST(slack_picks_the_instant_with_most_trailing_zeros)
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
		expect_le(at_ns, TIMER_DEADLINE_MAX_NS);
	}
	expect_eq(timer_slacken_ns(UINT64_MAX, 5), UINT64_MAX);
	expect_eq(timer_slacken_ns(TIMER_DEADLINE_MAX_NS, TIMER_SLACK_MAX_NS),
	          TIMER_DEADLINE_MAX_NS);
}
END_TEST

/* What the owner relies on: re-armed to a later deadline, a timer's instant does not move back. */
START_TEST(slack_is_monotone_in_the_deadline)
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
		if (b_ns > TIMER_DEADLINE_MAX_NS)
			b_ns = TIMER_DEADLINE_MAX_NS;
		expect_le(timer_slacken_ns(a_ns, slack_ns), timer_slacken_ns(b_ns, slack_ns));
	}
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("word", argc, argv);
	tests_add(rearmed_changes_deadline_and_phase_alone, 20);
	tests_add(with_phase_changes_the_phase_alone, 20);
	tests_add(armed_is_a_new_life_in_the_inbox, 20);
	tests_add(idle_is_parked_for_never, 60);
	tests_add(restored_is_as_before_and_looked_at, 60);
	tests_add(looked_at_is_out_of_the_inbox_and_no_word_seen_before, 20);
	tests_add(deadlines_are_rounded_up_to_the_tick_and_never_is_never, 20);
	tests_add(identities_hold_generation_and_flags, 20);
	tests_add(fresh_is_an_armed_word_of_the_same_deadline, 20);
	tests_add(periods_are_counted_from_their_base_whatever_the_interval, 60);
	tests_add(phase_does_not_drift, 20);
	tests_add(periods_past_the_end_of_time_are_never, 20);
	tests_add(generations_go_round_without_zero, 20);
	tests_add(handles_hold_slot_and_generation_and_are_never_zero, 20);
	tests_add(handles_of_another_life_are_told_apart, 20);
	tests_add(queue_and_slack_are_kept_and_slack_saturates, 20);
	tests_add(slack_picks_the_instant_with_most_trailing_zeros, 20);
	tests_add(slack_is_monotone_in_the_deadline, 20);
	return tests_run();
}
