/* SPDX-License-Identifier: MIT */
/*
 * The state word and the aux word: every transition, from every state, against a word taken apart
 * by division; deadlines to 2^63; slack, against trying every power of two.
 */
#include "harness.h"

#include "timer.h"

/* A state word taken apart. */
struct parts {
	uint64_t units;
	uint64_t tag;
	uint64_t pushed;
	uint64_t inbox;
	uint64_t phase;
};

static const uint64_t some_units[] = { 0,
	                               1,
	                               2,
	                               63,
	                               64,
	                               65,
	                               (1 << 18) - 1,
	                               1 << 18,
	                               (UINT64_C(1) << 54) - 1,
	                               UINT64_C(1) << 56,
	                               TIMER_UNITS_NEVER - 1,
	                               TIMER_UNITS_NEVER };

/* From the drawing in timer.h, by multiplication. */
static uint64_t parts_word(struct parts parts)
{
	return parts.units * 128 + parts.tag * 16 + parts.pushed * 8 + parts.inbox * 4 +
	       parts.phase;
}

static struct parts parts_of(uint64_t word)
{
	return (struct parts){ .units = word / 128,
		               .tag = word / 16 % 8,
		               .pushed = word / 8 % 2,
		               .inbox = word / 4 % 2,
		               .phase = word % 4 };
}

static void expect_parts(uint64_t word, struct parts parts)
{
	expect_eq(word, parts_word(parts));
	expect_eq(word_units(word), parts.units);
	expect_eq(word_tag(word), parts.tag);
	expect_eq(word_pushed(word), parts.pushed == 1);
	expect_eq(word_in_inbox(word), parts.inbox == 1);
	expect_eq(word_phase(word), parts.phase);
}

/* Calls `test` with every phase, flag, tag and interesting deadline. */
static void for_every_word(void (*test)(uint64_t word))
{
	for (unsigned i = 0; i < COUNT_OF(some_units); i++) {
		for (unsigned low = 0; low < 128; low++) {
			uint64_t word = some_units[i] * 128 + low;

			expect_parts(word, parts_of(word));
			test(word);
		}
	}
}

static void check_rearmed(uint64_t word)
{
	for (unsigned i = 0; i < COUNT_OF(some_units); i++) {
		struct parts parts = parts_of(word);

		parts.units = some_units[i];
		parts.phase = TIMER_ARMED;
		expect_parts(word_rearmed(word, some_units[i]), parts);
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
	for (unsigned i = 0; i < COUNT_OF(some_units); i++) {
		struct parts parts = parts_of(word);

		parts.units = some_units[i];
		parts.tag = (parts.tag + 1) % 8;
		parts.inbox = 1;
		parts.phase = TIMER_ARMED;
		expect_parts(word_armed(word, some_units[i]), parts);
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
	bool idles = parts.phase == TIMER_PARKED && parts.units == TIMER_UNITS_NEVER;

	expect_eq(word_idles(word), idles);
	expect_eq(word_undelivered(word),
	          parts.phase == TIMER_PENDING || (parts.phase == TIMER_PARKED && !idles));
	parts.phase = TIMER_PARKED;
	parts.units = TIMER_UNITS_NEVER;
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
		uint64_t word = some_units[low % COUNT_OF(some_units)] * 128 + low;
		struct parts parts = parts_of(word);

		parts.units = word_units(before);
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
	struct parts parts = { .units = word_units(word),
		               .tag = (word / 16 + 1) % 8,
		               .phase = word_phase(word) };

	expect_parts(word_looked_at(word), parts);
}

START_TEST(looked_at_is_out_of_the_inbox_and_no_word_seen_before)
{
	for_every_word(check_looked_at);
}
END_TEST

static void check_units_of(uint64_t deadline_ns)
{
	uint64_t units = units_from_ns(deadline_ns);
	uint64_t word = word_armed(0, units);

	expect_eq(units, deadline_ns / 64 + (deadline_ns % 64 > 0));
	expect_lt(units, TIMER_UNITS_NEVER);
	expect_le(deadline_ns, word_deadline_ns(word));
	expect_lt(word_deadline_ns(word) - deadline_ns, 64);
}

START_TEST(deadlines_are_rounded_up_to_the_unit_and_never_is_never)
{
	struct dice dice = dice_new(1);

	for (unsigned k = 0; k < 63; k++)
		for (uint64_t i = 0; i < 130; i++)
			check_units_of(((uint64_t)1 << k) - (k > 6 ? 65 : 0) + i);
	for (unsigned i = 0; i < 100000; i++)
		check_units_of(dice_magnitude(&dice, 62));
	for (uint64_t i = 0; i < 200; i++)
		check_units_of(TIMER_DEADLINE_MAX_NS - i);
	expect_eq(TIMER_DEADLINE_MAX_NS, ((uint64_t)1 << 63) - 128);
	expect_eq(units_from_ns(UINT64_MAX), TIMER_UNITS_NEVER);
	expect_eq(word_deadline_ns(word_armed(0, TIMER_UNITS_NEVER)), UINT64_MAX);
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

START_TEST(armed_deadlines_are_exact_to_the_nanosecond)
{
	static const uint64_t some_flags[] = { 0, AUX_PERIODIC, AUX_SLACK, AUX_FLAGS };
	struct dice dice = dice_new(2);

	for (unsigned i = 0; i < 300000; i++) {
		uint64_t deadline_ns = some_deadline_ns(&dice);
		uint64_t generation = dice_roll(&dice) & TIMER_GENERATION_MASK;
		uint64_t flags = some_flags[dice_below(&dice, 4)];
		uint64_t aux = aux_make(generation, deadline_ns, flags);
		uint64_t word = word_armed(0, units_from_ns(deadline_ns));

		expect_eq(timer_deadline_ns(word, aux), deadline_ns);
		expect_eq(aux_generation(aux), generation);
		expect_eq(aux & AUX_FLAGS, flags);
		expect_eq(aux_periodic(aux), (flags & AUX_PERIODIC) != 0);
		expect_eq(aux_has_slack(aux), (flags & AUX_SLACK) != 0);
	}
	for (unsigned i = 0; i < COUNT_OF(some_flags); i++) {
		uint64_t aux = aux_make(TIMER_GENERATION_MASK, UINT64_MAX, some_flags[i]);

		expect_eq(timer_deadline_ns(word_armed(0, TIMER_UNITS_NEVER), aux), UINT64_MAX);
		expect_eq(aux_generation(aux), TIMER_GENERATION_MASK);
	}
}
END_TEST

/*
 * Armed for one deadline, re-armed for another: first the residue is forgotten, then the word
 * changes. In between the first deadline reads as rounded up. If the residue does not speak of the
 * other deadline it may as well stay.
 */
static void check_rearmed_deadline(uint64_t armed_ns, uint64_t rearmed_ns)
{
	uint64_t aux = aux_make(7, armed_ns, AUX_SLACK), left = aux;
	uint64_t word = word_armed(0, units_from_ns(armed_ns));
	uint64_t got_ns;

	expect_context("armed, re-armed", armed_ns, rearmed_ns);
	aux = aux_rounded(aux);
	expect_eq(aux_generation(aux), 7);
	expect_eq(aux & AUX_FLAGS, AUX_SLACK);
	expect_eq(timer_deadline_ns(word, aux), word_deadline_ns(word));
	word = word_rearmed(word, units_from_ns(rearmed_ns));
	got_ns = timer_deadline_ns(word, aux);
	expect_le(rearmed_ns, got_ns);
	expect_lt(got_ns - rearmed_ns, TIMER_UNIT_NS);
	/* A caller who decides by the word alone decides the same. */
	expect_eq(got_ns, word_deadline_ns(word));
	if (!aux_speaks_of(left, word))
		expect_eq(timer_deadline_ns(word, left), got_ns);
}

START_TEST(rearmed_deadlines_are_never_early_and_less_than_a_unit_late)
{
	struct dice dice = dice_new(3);

	for (unsigned i = 0; i < 300000; i++) {
		uint64_t armed_ns = some_deadline_ns(&dice);

		check_rearmed_deadline(armed_ns, some_deadline_ns(&dice));
		/* In the same unit, beside it, or where the units' low bits are the same. */
		check_rearmed_deadline(armed_ns, (armed_ns + (dice_below(&dice, 9) << 19) +
		                                  dice_below(&dice, 200)) %
		                                         (TIMER_DEADLINE_MAX_NS + 1));
	}
}
END_TEST

START_TEST(rearming_to_the_first_and_the_last_deadline_is_not_never)
{
	for (uint64_t residue = 0; residue < 130; residue++) {
		for (uint64_t k = 6; k < 60; k++) {
			uint64_t distance_ns = ((uint64_t)1 << k) + 64 - residue % 64;

			check_rearmed_deadline(TIMER_DEADLINE_MAX_NS - distance_ns,
			                       TIMER_DEADLINE_MAX_NS);
			check_rearmed_deadline(distance_ns, 0);
		}
	}
}
END_TEST

START_TEST(rearming_to_never_is_never)
{
	struct dice dice = dice_new(4);

	for (unsigned i = 0; i < 10000; i++) {
		uint64_t deadline_ns = some_deadline_ns(&dice);
		uint64_t word = word_armed(0, units_from_ns(deadline_ns));

		word = word_rearmed(word, units_from_ns(UINT64_MAX));
		expect_eq(timer_deadline_ns(word, aux_make(1, deadline_ns, 0)), UINT64_MAX);
		expect_eq(timer_deadline_ns(word, aux_make(1, 0, 0)), UINT64_MAX);
	}
}
END_TEST

/*
 * The aux word of another deadline, written a moment before the word: then it reads as rounded
 * up.
 */
START_TEST(residue_of_another_deadline_is_not_applied)
{
	struct dice dice = dice_new(9);

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t this_ns = some_deadline_ns(&dice);
		uint64_t other_ns = some_deadline_ns(&dice);
		uint64_t word = word_armed(0, units_from_ns(this_ns));

		if ((units_from_ns(this_ns) ^ units_from_ns(other_ns)) << 51 == 0)
			continue; /* the low 13 bits agree */
		expect_eq(timer_deadline_ns(word, aux_make(1, other_ns, 0)),
		          word_deadline_ns(word));
	}
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
		uint64_t aux = aux_make(generation, 12345, 0);

		for (uint64_t other = 1; other < 34; other++) {
			bool same = word % 4 != TIMER_FREE && other == generation;

			expect_eq(timer_is(word, aux, handle_make(other, 99)), same);
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

/* Density decides: what a re-arm touches is packed, four to a cache line. */
START_TEST(records_are_as_small_as_promised)
{
	expect_eq(sizeof(struct timer_hot), 16);
	expect_le(sizeof(struct timer_hot) + sizeof(struct timer_cold) +
	                  sizeof(struct timer_filing),
	          72);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("timer", argc, argv);
	tests_add(rearmed_changes_deadline_and_phase_alone, 20);
	tests_add(with_phase_changes_the_phase_alone, 20);
	tests_add(armed_is_a_new_life_in_the_inbox, 20);
	tests_add(idle_is_parked_for_never, 60);
	tests_add(restored_is_as_before_and_looked_at, 60);
	tests_add(looked_at_is_out_of_the_inbox_and_no_word_seen_before, 20);
	tests_add(deadlines_are_rounded_up_to_the_unit_and_never_is_never, 20);
	tests_add(armed_deadlines_are_exact_to_the_nanosecond, 20);
	tests_add(rearmed_deadlines_are_never_early_and_less_than_a_unit_late, 20);
	tests_add(rearming_to_the_first_and_the_last_deadline_is_not_never, 20);
	tests_add(rearming_to_never_is_never, 20);
	tests_add(residue_of_another_deadline_is_not_applied, 20);
	tests_add(generations_go_round_without_zero, 20);
	tests_add(handles_hold_slot_and_generation_and_are_never_zero, 20);
	tests_add(handles_of_another_life_are_told_apart, 20);
	tests_add(queue_and_slack_are_kept_and_slack_saturates, 20);
	tests_add(slack_picks_the_instant_with_most_trailing_zeros, 20);
	tests_add(slack_is_monotone_in_the_deadline, 20);
	tests_add(records_are_as_small_as_promised, 20);
	return tests_run();
}
