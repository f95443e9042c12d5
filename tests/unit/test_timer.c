/* SPDX-License-Identifier: MIT */
/*
 * The decisions about a timer, each from every state of a slot in plain memory: the word is put
 * together and taken apart by multiplication, and what a decision makes of it stands here in words
 * of its own. All that a decision does not name must stay as it was, in the other slots too.
 */
#include "harness.h"

#include <errno.h>
#include <string.h>

/* An instant between any two atomic steps of what is inline in timer.h. */
static void (*step_hook)(void);
#define ATOMIC_STEP() (step_hook ? step_hook() : (void)0)
#include "timer.h"

#include "parts.h"

#define SLOTS 4
#define SLOT 2
#define NEVER ((UINT64_C(1) << 57) - 1)
#define FRESH (UINT64_C(1) << 56)
#define TICKS 1000         /* a deadline */
#define DEADLINE_NS 64000  /* the same in ns */
#define SLACK_NS 2000      /* of the deadlines from TICKS - 1 to TICKS + 1 ... */
#define SLACKENED_NS 65536 /* ... the instant: 2^16 is in the window */
#define INTERVAL_NS 10000
#define FIRST_NS 63990 /* the armer's first deadline, rounded up to TICKS */
#define QUEUE 3
#define DATA 0x1234
#define FN 0x5678
#define PERIODIC_MAX_NS ((UINT64_C(1) << 62) - 128)

struct slots {
	struct timer_hot hot[SLOTS];
	struct timer_cold cold[SLOTS];
	struct timer_period periods[SLOTS];
};

struct bench {
	struct slots slots;
	struct slots want; /* what they have to be */
	struct timers timers;
	struct timer_hot *hot;
	struct parts parts; /* of the slot's word at the start */
	bool kept, periodic, slack;
	uint64_t handle;
};

static uint64_t bench_identity(const struct bench *bench, uint64_t generation)
{
	return (generation << 26) + (bench->periodic ? 2 : 0) + (bench->slack ? 1 : 0);
}

static uint64_t bench_generation(const struct bench *bench)
{
	return bench->kept ? 43 : 42;
}

static uint64_t bench_deadline_ns(const struct bench *bench)
{
	return bench->parts.ticks == NEVER ? UINT64_MAX : bench->parts.ticks % FRESH * 64;
}

static uint64_t bench_instant_ns(const struct bench *bench)
{
	if (bench->parts.ticks == NEVER)
		return UINT64_MAX;
	return bench->slack ? SLACKENED_NS : bench_deadline_ns(bench);
}

static bool bench_fresh(const struct bench *bench)
{
	return bench->periodic && bench->parts.ticks == TICKS + FRESH;
}

static bool bench_idles(const struct bench *bench)
{
	return bench->parts.phase == TIMER_PARKED && bench->kept;
}

static void bench_set(struct bench *bench, struct parts parts)
{
	u64_store_relaxed(&bench->hot->word, parts_word(parts));
}

/* The state once more, and all of memory with it. */
static void bench_reset(struct bench *bench)
{
	struct slots *slots = &bench->slots;

	step_hook = NULL;
	test_point_hook = NULL;
	memset(slots, 0, sizeof(*slots));
	for (unsigned i = 0; i < SLOTS; i++)
		u64_store_relaxed(&slots->hot[i].word, NEVER * 128);
	bench->timers = (struct timers){ slots->hot, slots->cold, slots->periods, 40 };
	bench->hot = &slots->hot[SLOT];
	bench->handle = (bench_generation(bench) << 26) + SLOT;
	bench_set(bench, bench->parts);
	u64_store_relaxed(&bench->hot->identity, bench_identity(bench, bench_generation(bench)));
	u64_store_relaxed(&slots->cold[SLOT].data, DATA);
	u64_store_relaxed(&slots->cold[SLOT].fn, FN);
	u64_store_relaxed(&slots->cold[SLOT].interval_ns, bench->periodic ? INTERVAL_NS : 0);
	u64_store_relaxed(&slots->cold[SLOT].queue_slack,
	                  (bench->slack ? SLACK_NS : 0) * 65536 + QUEUE);
	u64_store_relaxed(&slots->periods[SLOT].first_ns, FIRST_NS);
	memcpy(&bench->want, slots, sizeof(*slots));
	expect_context("word, identity", bench->hot->word, bench->hot->identity);
}

/* The slot's word is this, and all else is what is wanted: what was, if the test says no more. */
static void expect_slot(struct bench *bench, struct parts parts)
{
	step_hook = NULL;
	expect_eq(bench->hot->word, parts_word(parts));
	u64_store_relaxed(&bench->want.hot[SLOT].word, parts_word(parts));
	expect(memcmp(&bench->slots, &bench->want, sizeof(bench->want)) == 0);
}

static void expect_outcome(const struct bench *bench, struct timer_outcome outcome, int result,
                           enum timer_left left)
{
	expect_eq(outcome.result, result);
	expect_eq(outcome.left, left);
	if (left != TIMER_NOTHING)
		expect_eq(outcome.word, bench->hot->word);
}

static enum timer_left left_of(uint64_t is_there)
{
	return is_there ? TIMER_WAKE : TIMER_PUSH;
}

/* Can a slot be in this state? */
static bool bench_possible(const struct bench *bench)
{
	bool fresh = bench->parts.ticks == TICKS + FRESH;

	if ((bench->parts.pushed && !bench->parts.inbox) || (bench->kept && bench->periodic) ||
	    (fresh && !(bench->periodic && bench->parts.inbox)))
		return false;
	switch (bench->parts.phase) {
	case TIMER_PENDING:
		return bench->parts.ticks == TICKS;
	case TIMER_PARKED:
		return bench->periodic ? bench->parts.ticks == TICKS
		                       : bench->kept && bench->parts.ticks == NEVER;
	default:
		return true;
	}
}

/*
 * Free: filed, or nowhere, of a last life of each kind. Armed: filed, never, fresh. Pending.
 * Parked: periodic, idle. Each in the inbox, claimed to be, or not; with and without slack; at
 * several tags.
 */
static void for_every_state(void (*test)(struct bench *bench))
{
	static const uint64_t ticks[] = { TICKS, NEVER, TICKS + FRESH };
	static const uint64_t tags[] = { 0, 5, 7 };
	unsigned count = 0;

	for (unsigned i = 0; i < 3 * 3 * 4 * 4 * 8; i++) {
		struct bench bench = {
			.parts = { .ticks = ticks[i % 3],
			           .tag = tags[i / 3 % 3],
			           .pushed = i / 9 % 2,
			           .inbox = i / 18 % 2,
			           .phase = i / 36 % 4 },
			.kept = i / 144 % 2,
			.periodic = i / 288 % 2,
			.slack = i / 576 % 2,
		};

		if (!bench_possible(&bench))
			continue;
		bench_reset(&bench);
		test(&bench);
		count++;
	}
	expect_eq(count, 330);
}

/* Handles of an earlier life, a later one, none, another slot, and a kept or unkept neighbour. */
#define WRONG_HANDLES 5
static uint64_t wrong_handle(const struct bench *bench, unsigned which)
{
	const uint64_t handles[WRONG_HANDLES] = { bench->handle - (UINT64_C(2) << 26),
		                                  bench->handle + (UINT64_C(2) << 26), 0,
		                                  bench->handle - 1,
		                                  bench->handle ^ UINT64_C(1) << 26 };

	return handles[which];
}

/* The next life takes the slot, with the same word. */
static struct bench *hooked;
static enum test_point hooked_point;
static uint64_t next_life(struct bench *bench)
{
	uint64_t identity = bench_identity(bench, bench_generation(bench) + 2);

	u64_store_relaxed(&bench->hot->identity, identity);
	u64_store_relaxed(&bench->want.hot[SLOT].identity, identity);
	return identity;
}

static void at_point(struct bench *bench, enum test_point point, void (*hook)(enum test_point))
{
	hooked = bench;
	hooked_point = point;
	test_point_hook = hook;
}

static void life_changes(enum test_point point)
{
	if (point != hooked_point)
		return;
	test_point_hook = NULL;
	next_life(hooked);
}

/* ---- arm ---- */

/* Arms a timer of the kind; the life that the slot had says nothing about that. */
static void check_armed(struct bench *bench, uint64_t ticks, bool kept, bool periodic, bool slack)
{
	struct timer_arming arming = { .queue = 9,
		                       .deadline_ns = ticks == NEVER ? UINT64_MAX : ticks * 64 - 5,
		                       .interval_ns = periodic ? 77 : 0,
		                       .slack_ns = slack ? 11 : 0,
		                       .data = 101,
		                       .fn = 102,
		                       .kept = kept };
	bool quiet = !bench->parts.inbox && bench->parts.ticks <= ticks;
	struct timer_cold *cold = &bench->want.cold[SLOT];
	bool used = bench->hot->identity != 0;
	uint64_t generation = (used ? 44u : 42u) + kept;
	uint64_t handle = 0;
	struct timer_outcome outcome;

	outcome = timer_arm(&bench->timers, SLOT, &arming, &handle);
	expect_outcome(bench, outcome, 0, quiet ? TIMER_NOTHING : left_of(bench->parts.pushed));
	expect_eq(handle, generation * (UINT64_C(1) << 26) + SLOT);
	u64_store_relaxed(&bench->want.hot[SLOT].identity,
	                  generation * (UINT64_C(1) << 26) + periodic * 2u + slack);
	u64_store_relaxed(&cold->data, 101);
	u64_store_relaxed(&cold->fn, 102);
	u64_store_relaxed(&cold->interval_ns, arming.interval_ns);
	u64_store_relaxed(&cold->queue_slack, arming.slack_ns * 65536 + 9);
	if (periodic)
		u64_store_relaxed(&bench->want.periods[SLOT].first_ns, arming.deadline_ns);
	expect_slot(bench, (struct parts){ .ticks = ticks,
	                                   .tag = (bench->parts.tag + 1) % 8,
	                                   .pushed = bench->parts.pushed,
	                                   .inbox = !quiet,
	                                   .phase = TIMER_ARMED });
}

static void check_arm(struct bench *bench)
{
	static const uint64_t ticks[] = { 0, TICKS - 1, TICKS, TICKS + 1, NEVER };

	if (bench->parts.phase != TIMER_FREE)
		return;
	for (unsigned i = 0; i < COUNT_OF(ticks) * 8; i++) {
		if (i / 2 % 2 && i % 2) /* kept and periodic */
			continue;
		bench_reset(bench);
		check_armed(bench, ticks[i / 8], i % 2, i / 2 % 2, i / 4 % 2);
	}
}

START_TEST(arm_gives_a_free_slot_a_life_and_pushes_it_unless_it_is_filed_early_enough)
{
	for_every_state(check_arm);
}
END_TEST

START_TEST(arm_of_a_slot_never_used_pushes_it)
{
	struct bench bench = { .parts = { .ticks = NEVER } };

	for (unsigned kept = 0; kept < 2; kept++) {
		bench_reset(&bench);
		u64_store_relaxed(&bench.hot->identity, 0);
		check_armed(&bench, TICKS, kept, false, false);
	}
}
END_TEST

static void owner_unfiles(enum test_point point)
{
	test_point_hook = NULL;
	expect_eq(point, TEST_POINT_ARM_BEFORE_PUBLISH);
	expect_eq(timer_true_ns(&hooked->timers, SLOT, DEADLINE_NS), UINT64_MAX);
}

/* The whole way: filed, cancelled without a word to the owner, and armed in that filing. */
START_TEST(takeover_pushes_only_if_the_filing_does_not_cover_the_deadline)
{
	static const struct {
		uint64_t deadline_ns;
		bool lies_in_inbox, found;
		enum timer_left left;
	} rows[] = {
		{ DEADLINE_NS, false, false, TIMER_NOTHING },
		{ DEADLINE_NS + 1, false, false, TIMER_NOTHING },
		{ UINT64_MAX, false, false, TIMER_NOTHING },
		{ DEADLINE_NS - 64, false, false, TIMER_PUSH },
		{ DEADLINE_NS, true, false, TIMER_PUSH },
		{ DEADLINE_NS, false, true, TIMER_PUSH },
	};

	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		struct bench bench = { .parts = { .ticks = NEVER } };
		struct timer_arming arming = { .queue = QUEUE, .deadline_ns = DEADLINE_NS };
		struct timer_expiry expiry;
		uint64_t handle, at_ns = 0;

		bench_reset(&bench);
		expect_context("row", i, 0);
		expect_outcome(&bench, timer_arm(&bench.timers, SLOT, &arming, &handle), 0,
		               TIMER_PUSH);
		if (!rows[i].lies_in_inbox) {
			expect(timer_look(&bench.timers, SLOT, &at_ns));
			expect_eq(at_ns, DEADLINE_NS);
		}
		expect_outcome(&bench, timer_cancel(&bench.timers, handle, QUEUE), 0,
		               TIMER_NOTHING);
		if (rows[i].found)
			at_point(&bench, TEST_POINT_ARM_BEFORE_PUBLISH, owner_unfiles);
		arming.deadline_ns = rows[i].deadline_ns;
		expect_outcome(&bench, timer_arm(&bench.timers, SLOT, &arming, &handle), 0,
		               rows[i].left);
		/* What has taken over a filing is filed again when that instant comes. */
		if (rows[i].left == TIMER_NOTHING && rows[i].deadline_ns > DEADLINE_NS) {
			expect_eq(timer_expire(&bench.timers, SLOT, DEADLINE_NS, &expiry),
			          TIMER_IS_LATER);
			expect_eq(expiry.at_ns, rows[i].deadline_ns == UINT64_MAX
			                                ? UINT64_MAX
			                                : DEADLINE_NS + 64);
		}
	}
}
END_TEST

/* ---- re-arm ---- */

static const uint64_t new_ticks[] = { 0, TICKS - 1, TICKS, TICKS + 1, NEVER };

static uint64_t new_deadline_ns(unsigned i)
{
	if (new_ticks[i] == NEVER)
		return UINT64_MAX;
	return new_ticks[i] > 0 ? new_ticks[i] * 64 - 63 : 0;
}

/* What a re-arm makes of a live timer's word. */
static struct parts rearmed_parts(const struct bench *bench, uint64_t ticks)
{
	struct parts parts = bench->parts;

	parts.tag = (parts.tag + 1) % 8;
	parts.ticks = ticks;
	if (bench->periodic || parts.phase != TIMER_ARMED || ticks < bench->parts.ticks)
		parts.inbox = 1;
	if (bench->periodic && ticks != NEVER)
		parts.ticks += FRESH;
	parts.phase = TIMER_ARMED;
	return parts;
}

static void check_rearm(struct bench *bench)
{
	for (unsigned i = 0; i < COUNT_OF(new_ticks); i++) {
		struct parts parts = rearmed_parts(bench, new_ticks[i]);
		bool told = bench->periodic || bench->parts.phase != TIMER_ARMED ||
		            new_ticks[i] < bench->parts.ticks;
		struct timer_outcome outcome;

		bench_reset(bench);
		outcome = timer_rearm(&bench->timers, bench->handle, new_deadline_ns(i));
		if (bench->parts.phase == TIMER_FREE) {
			expect_outcome(bench, outcome, -ENOENT, TIMER_NOTHING);
			expect_slot(bench, bench->parts);
			continue;
		}
		expect_outcome(bench, outcome, bench_idles(bench),
		               told ? left_of(bench->parts.inbox) : TIMER_NOTHING);
		expect_slot(bench, parts);
	}
	bench_reset(bench);
	for (unsigned i = 0; i < WRONG_HANDLES; i++)
		expect_outcome(bench, timer_rearm(&bench->timers, wrong_handle(bench, i), 0),
		               -ENOENT, TIMER_NOTHING);
	if (bench->periodic && bench->parts.phase != TIMER_FREE)
		expect_outcome(bench,
		               timer_rearm(&bench->timers, bench->handle, PERIODIC_MAX_NS + 1),
		               -ERANGE, TIMER_NOTHING);
	expect_slot(bench, bench->parts);
}

START_TEST(rearm_moves_a_live_timer_and_tells_the_owner_of_what_may_come_earlier)
{
	for_every_state(check_rearm);
}
END_TEST

static void check_move(struct bench *bench)
{
	uint64_t before, after;

	for (unsigned i = 0; i < COUNT_OF(new_ticks); i++) {
		struct parts parts = bench->parts;
		enum timer_moved moved = TIMER_NOT_MOVED;

		bench_reset(bench);
		if (parts.phase == TIMER_ARMED && !bench->slack && !bench->periodic &&
		    new_ticks[i] >= parts.ticks) {
			parts.ticks = new_ticks[i];
			moved = TIMER_MOVED;
		}
		expect_eq(
			timer_move(bench->hot, bench->handle, new_deadline_ns(i), &before, &after),
			moved);
		expect_slot(bench, parts);
	}
	bench_reset(bench);
	for (unsigned i = 0; i < WRONG_HANDLES; i++) {
		uint64_t handle = wrong_handle(bench, i);

		expect_eq(timer_move(&bench->slots.hot[handle % (1 << 26)], handle, UINT64_MAX,
		                     &before, &after),
		          TIMER_NOT_MOVED);
	}
	expect_slot(bench, bench->parts);
}

START_TEST(move_moves_armed_one_shots_to_no_earlier_deadlines_and_nothing_else)
{
	for_every_state(check_move);
}
END_TEST

/* Before the third step, which is the change: the word, the identity, the change. */
static unsigned steps;
static void life_changes_before_the_change(void)
{
	if (++steps == 3)
		atomic_store_explicit(&hooked->hot->identity,
		                      bench_identity(hooked, bench_generation(hooked) + 2),
		                      memory_order_relaxed);
}

START_TEST(move_of_a_later_life_is_asked_about_and_undone)
{
	struct bench bench = { .parts = { .ticks = TICKS, .phase = TIMER_ARMED } };
	struct parts parts = bench.parts;
	uint64_t before = 0, after = 0;

	bench_reset(&bench);
	hooked = &bench;
	steps = 0;
	step_hook = life_changes_before_the_change;
	expect_eq(timer_move(bench.hot, bench.handle, DEADLINE_NS + 64, &before, &after),
	          TIMER_MOVED_PERHAPS);
	step_hook = NULL;
	next_life(&bench);
	expect_eq(before, parts_word(bench.parts));
	parts.ticks++;
	expect_eq(after, parts_word(parts));
	expect_slot(&bench, parts);
	expect_outcome(&bench, timer_confirm_or_undo(bench.hot, bench.handle, before, after),
	               -ENOENT, TIMER_PUSH);
	parts = bench.parts;
	parts.inbox = 1;
	expect_slot(&bench, parts);
}
END_TEST

/* ---- cancel ---- */

static struct parts cancelled_parts(const struct bench *bench)
{
	struct parts parts = bench->parts;

	if (parts.phase == TIMER_ARMED && bench->slack)
		parts.inbox = 1;
	if (parts.phase == TIMER_PENDING && bench->periodic)
		parts.inbox = 1;
	if (parts.phase != TIMER_ARMED)
		parts.ticks = NEVER;
	parts.phase = TIMER_FREE;
	return parts;
}

static void check_cancel(struct bench *bench)
{
	static const uint32_t queues[] = { TIMER_ANY_QUEUE, QUEUE, QUEUE + 1 };
	bool live = bench->parts.phase != TIMER_FREE;

	for (unsigned i = 0; i < 3; i++) {
		struct parts parts = cancelled_parts(bench);
		struct timer_outcome outcome;

		bench_reset(bench);
		for (unsigned j = 0; j < WRONG_HANDLES; j++)
			expect_outcome(
				bench,
				timer_cancel(&bench->timers, wrong_handle(bench, j), queues[i]),
				-ENOENT, TIMER_NOTHING);
		expect_slot(bench, bench->parts);
		outcome = timer_cancel(&bench->timers, bench->handle, queues[i]);
		if (!live || i == 2) {
			expect_outcome(bench, outcome, -ENOENT, TIMER_NOTHING);
			expect_slot(bench, bench->parts);
			continue;
		}
		expect_outcome(bench, outcome, 0,
		               parts.inbox > bench->parts.inbox ? TIMER_PUSH : TIMER_NOTHING);
		expect_slot(bench, parts);
	}
}

START_TEST(cancel_frees_and_tells_the_owner_only_where_the_word_does_not_say_the_filing)
{
	for_every_state(check_cancel);
}
END_TEST

/* ---- a word that came back ---- */

/* Returns what an undo makes of `now`; `refresh`: the owner has stored a base of ours. */
static struct parts undone_parts(const struct bench *bench, struct parts now, bool refresh)
{
	now.phase = bench_idles(bench) ? TIMER_PARKED : TIMER_ARMED;
	now.ticks = bench->parts.ticks;
	if (refresh && now.ticks < FRESH)
		now.ticks += FRESH;
	now.inbox = 1;
	return now;
}

static struct parts left_by_change;
static unsigned undo_case;

/* What may have happened between a change and its undoing. */
enum {
	NOTHING_HAPPENS,
	OTHER_PUSHES,
	OWNER_LOOKS,
	OWNER_UNFILES,
	OWNER_EXPIRES,
	REARMED_THERE,
	LIFE_GOES_ON,
	UNDO_CASES
};

static struct parts parts_after_undo_case(const struct bench *bench, struct parts parts)
{
	switch (undo_case) {
	case OWNER_LOOKS:
		parts.tag = (parts.tag + 1) % 8;
		parts.inbox = parts.pushed = 0;
		if (parts.phase == TIMER_FREE)
			parts.ticks = NEVER;
		else if (bench->periodic && parts.ticks != NEVER)
			parts.ticks %= FRESH;
		break;
	case OTHER_PUSHES:
		parts.pushed = 1;
		break;
	case OWNER_UNFILES:
		parts.ticks = NEVER;
		break;
	case REARMED_THERE:
		parts.tag = (parts.tag + 1) % 8;
		break;
	case OWNER_EXPIRES:
		parts.phase = TIMER_PENDING;
		break;
	case LIFE_GOES_ON:
		parts.tag = (parts.tag + 1) % 8;
		parts.ticks = 5 * TICKS;
		parts.phase = TIMER_ARMED;
		break;
	default:
		break;
	}
	return parts;
}

static bool undo_case_possible(const struct bench *bench, struct parts parts)
{
	switch (undo_case) {
	case OWNER_LOOKS:
		return parts.inbox;
	case OTHER_PUSHES:
		return parts.inbox && !parts.pushed;
	case REARMED_THERE:
		return parts.phase == TIMER_ARMED;
	case OWNER_UNFILES:
		return parts.phase == TIMER_FREE && !parts.inbox;
	case OWNER_EXPIRES:
		return parts.phase == TIMER_ARMED && parts.ticks != NEVER &&
		       !(bench->periodic && parts.ticks >= FRESH);
	default:
		return true;
	}
}

static void something_happens(enum test_point point)
{
	if (point == TEST_POINT_UNDO)
		bench_set(hooked, parts_after_undo_case(hooked, left_by_change));
}

static void check_undo_of(struct bench *bench, struct parts after)
{
	bool fresh = bench->periodic && after.phase == TIMER_ARMED && after.ticks >= FRESH &&
	             after.ticks != NEVER;
	uint64_t stale = wrong_handle(bench, 0);
	struct timer_outcome outcome;

	left_by_change = after;
	for (undo_case = 0; undo_case < UNDO_CASES; undo_case++) {
		struct parts now = parts_after_undo_case(bench, after);

		if (!undo_case_possible(bench, after))
			continue;
		bench_reset(bench);
		expect_context("after, case", parts_word(after), undo_case);
		bench_set(bench, after);
		expect_outcome(bench,
		               timer_confirm_or_undo(bench->hot, bench->handle,
		                                     parts_word(bench->parts), parts_word(after)),
		               0, TIMER_NOTHING);
		expect_slot(bench, after);
		at_point(bench, TEST_POINT_UNDO, something_happens);
		outcome = timer_confirm_or_undo(bench->hot, stale, parts_word(bench->parts),
		                                parts_word(after));
		if (undo_case >= REARMED_THERE) {
			expect_outcome(bench, outcome, 0, TIMER_NOTHING);
			expect_slot(bench, now);
			continue;
		}
		expect_outcome(bench, outcome, -ENOENT, left_of(now.pushed));
		expect_slot(bench, undone_parts(bench, now, fresh && undo_case == OWNER_LOOKS));
	}
}

/* A stale caller's cancel, re-arms and move, and a stale consumer's delivery. */
static void check_undo(struct bench *bench)
{
	struct parts parts = bench->parts;

	if (parts.phase == TIMER_FREE)
		return;
	check_undo_of(bench, cancelled_parts(bench));
	for (unsigned i = 0; i < COUNT_OF(new_ticks); i++)
		check_undo_of(bench, rearmed_parts(bench, new_ticks[i]));
	if (parts.phase == TIMER_ARMED && !bench->periodic && parts.ticks != NEVER) {
		parts.ticks++;
		check_undo_of(bench, parts);
	}
	if (parts.phase == TIMER_PENDING && !bench->periodic) {
		parts.ticks = NEVER;
		parts.phase = bench->kept ? TIMER_PARKED : TIMER_FREE;
		check_undo_of(bench, parts);
	}
}

START_TEST(undo_makes_a_later_lifes_word_what_it_was_whatever_the_owner_did)
{
	for_every_state(check_undo);
}
END_TEST

static void check_life_changes(struct bench *bench)
{
	struct parts parts;

	if (bench->parts.phase == TIMER_FREE)
		return;
	at_point(bench, TEST_POINT_CANCEL_BEFORE_CAS, life_changes);
	expect_outcome(bench, timer_cancel(&bench->timers, bench->handle, QUEUE), -ENOENT,
	               left_of(bench->parts.pushed));
	expect_slot(bench, undone_parts(bench, cancelled_parts(bench), false));
	for (unsigned i = 0; i < COUNT_OF(new_ticks); i++) {
		bench_reset(bench);
		parts = rearmed_parts(bench, new_ticks[i]);
		at_point(bench, TEST_POINT_REARM_BEFORE_CAS, life_changes);
		expect_outcome(bench,
		               timer_rearm(&bench->timers, bench->handle, new_deadline_ns(i)),
		               -ENOENT, left_of(bench->parts.pushed));
		expect_slot(bench, undone_parts(bench, parts, false));
	}
}

START_TEST(a_life_that_takes_the_slot_before_the_change_gets_its_word_back)
{
	for_every_state(check_life_changes);
}
END_TEST

static void timer_expires(enum test_point point)
{
	struct parts parts = hooked->parts;

	if (point != hooked_point)
		return;
	test_point_hook = NULL;
	parts.phase = TIMER_PENDING;
	bench_set(hooked, parts);
}

static void timer_ends(enum test_point point)
{
	struct parts parts = hooked->parts;

	if (point != hooked_point)
		return;
	test_point_hook = NULL;
	parts.phase = TIMER_FREE;
	bench_set(hooked, parts);
}

START_TEST(a_decision_that_loses_the_race_decides_on_the_new_word)
{
	struct bench bench = { .parts = { .ticks = TICKS, .phase = TIMER_ARMED } };
	struct timer_expiry expiry;

	bench_reset(&bench);
	at_point(&bench, TEST_POINT_CANCEL_BEFORE_CAS, timer_expires);
	expect_outcome(&bench, timer_cancel(&bench.timers, bench.handle, QUEUE), 0, TIMER_NOTHING);
	expect_slot(&bench, (struct parts){ .ticks = NEVER });
	bench_reset(&bench);
	at_point(&bench, TEST_POINT_CANCEL_BEFORE_CAS, timer_ends);
	expect_outcome(&bench, timer_cancel(&bench.timers, bench.handle, QUEUE), -ENOENT,
	               TIMER_NOTHING);
	expect_slot(&bench, (struct parts){ .ticks = TICKS });
	bench_reset(&bench);
	at_point(&bench, TEST_POINT_REARM_BEFORE_CAS, timer_expires);
	expect_outcome(&bench, timer_rearm(&bench.timers, bench.handle, DEADLINE_NS + 64), 0,
	               TIMER_PUSH);
	expect_slot(&bench, (struct parts){ TICKS + 1, 1, 0, 1, TIMER_ARMED });
	bench_reset(&bench);
	at_point(&bench, TEST_POINT_OWNER_BEFORE_CAS, timer_ends);
	expect_eq(timer_expire(&bench.timers, SLOT, DEADLINE_NS, &expiry), TIMER_IS_NEITHER);
	expect_slot(&bench, (struct parts){ .ticks = NEVER });
}
END_TEST

/* ---- the inbox and the owner ---- */

static void check_pushed(struct bench *bench)
{
	struct parts parts = bench->parts;
	uint64_t word = parts_word(parts);

	parts.pushed = 1;
	if (!parts.inbox)
		return;
	expect(timer_pushed(bench->hot, &word));
	expect_slot(bench, parts);
	word ^= 128;
	if (word == parts_word(parts))
		return;
	expect(!timer_pushed(bench->hot, &word));
	expect_eq(word, parts_word(parts));
	expect_slot(bench, parts);
}

START_TEST(pushed_is_said_of_the_word_that_was_loaded_alone)
{
	for_every_state(check_pushed);
}
END_TEST

static void check_look(struct bench *bench)
{
	struct parts parts = bench->parts;
	bool live = parts.phase == TIMER_ARMED;
	uint64_t at_ns = 17;

	expect_eq(timer_look(&bench->timers, SLOT, &at_ns), parts.phase < TIMER_PENDING);
	if (parts.phase < TIMER_PENDING)
		expect_eq(at_ns, live ? bench_instant_ns(bench) : UINT64_MAX);
	if (live && bench_fresh(bench)) {
		u64_store_relaxed(&bench->want.periods[SLOT].moved_ns, DEADLINE_NS);
		u64_store_relaxed(&bench->want.periods[SLOT].moved_life,
		                  bench_identity(bench, bench_generation(bench)));
	}
	parts.tag = (parts.tag + 1) % 8;
	parts.inbox = parts.pushed = 0;
	if (parts.phase == TIMER_FREE)
		parts.ticks = NEVER;
	else if (parts.ticks == TICKS + FRESH)
		parts.ticks = TICKS;
	expect_slot(bench, parts);
}

START_TEST(look_takes_out_of_the_inbox_and_tells_where_to_file)
{
	for_every_state(check_look);
}
END_TEST

/* What the owner's finding of a slot where it is filed makes of its word, if that is free. */
static struct parts unfiled_parts(struct parts parts)
{
	if (parts.phase == TIMER_FREE && !parts.inbox)
		parts.ticks = NEVER;
	return parts;
}

static enum timer_turn turn_of(struct bench *bench, uint64_t by_ns, struct parts *parts)
{
	*parts = unfiled_parts(bench->parts);
	if (parts->phase == TIMER_PENDING)
		parts->phase = TIMER_PARKED;
	if (bench->parts.phase != TIMER_ARMED || bench_fresh(bench))
		return TIMER_IS_NEITHER;
	if (bench_instant_ns(bench) > by_ns)
		return TIMER_IS_LATER;
	parts->phase = TIMER_PENDING;
	return TIMER_IS_PENDING;
}

static void check_expiry(const struct bench *bench, const struct timer_expiry *expiry)
{
	expect_eq(expiry->identity, bench->want.hot[SLOT].identity);
	expect_eq(expiry->deadline_ns, bench_deadline_ns(bench));
	expect_eq(expiry->at_ns, bench_instant_ns(bench));
	expect_eq(expiry->interval_ns, bench->periodic ? INTERVAL_NS : 0);
	expect_eq(expiry->queue_slack, (bench->slack ? SLACK_NS : 0) * 65536 + QUEUE);
}

static void check_expire(struct bench *bench)
{
	static const uint64_t by_ns[] = {
		0, DEADLINE_NS - 1, DEADLINE_NS, SLACKENED_NS - 1, SLACKENED_NS, UINT64_MAX - 1
	};

	for (unsigned i = 0; i < COUNT_OF(by_ns); i++) {
		struct timer_expiry expiry;
		struct parts parts;
		enum timer_turn turn = turn_of(bench, by_ns[i], &parts);

		if (bench->parts.phase == TIMER_PENDING && !bench->periodic)
			return; /* filed nowhere */
		bench_reset(bench);
		expect_context("by", by_ns[i], i);
		expect_eq(timer_expire(&bench->timers, SLOT, by_ns[i], &expiry), turn);
		if (turn != TIMER_IS_NEITHER)
			check_expiry(bench, &expiry);
		expect_slot(bench, parts);
		if (turn != TIMER_IS_PENDING)
			continue;
		/* The next life, with the same word, is read and expired in its turn. */
		bench_reset(bench);
		at_point(bench, TEST_POINT_OWNER_BEFORE_CAS, life_changes);
		expect_eq(timer_expire(&bench->timers, SLOT, by_ns[i], &expiry), turn);
		check_expiry(bench, &expiry);
		expect_slot(bench, parts);
	}
}

START_TEST(expire_makes_pending_what_is_due_and_parks_what_was_not_delivered_for_a_period)
{
	for_every_state(check_expire);
}
END_TEST

static void slack_life_comes(enum test_point point)
{
	if (point != TEST_POINT_OWNER_BEFORE_CAS)
		return;
	test_point_hook = NULL;
	hooked->slack = true;
	next_life(hooked);
	u64_store_relaxed(&hooked->slots.cold[SLOT].queue_slack, SLACK_NS * 65536 + QUEUE);
	u64_store_relaxed(&hooked->want.cold[SLOT].queue_slack, SLACK_NS * 65536 + QUEUE);
}

START_TEST(expire_leaves_a_later_life_armed_that_is_not_due)
{
	struct bench bench = { .parts = { .ticks = TICKS, .phase = TIMER_ARMED } };
	struct timer_expiry expiry;

	bench_reset(&bench);
	at_point(&bench, TEST_POINT_OWNER_BEFORE_CAS, slack_life_comes);
	expect_eq(timer_expire(&bench.timers, SLOT, DEADLINE_NS, &expiry), TIMER_IS_LATER);
	check_expiry(&bench, &expiry);
	expect_slot(&bench, bench.parts);
}
END_TEST

static void check_true_ns(struct bench *bench)
{
	static const uint64_t filed_ns[] = { 0, DEADLINE_NS, SLACKENED_NS, 10 * DEADLINE_NS };

	for (unsigned i = 0; i < COUNT_OF(filed_ns); i++) {
		uint64_t want_ns = filed_ns[i];

		bench_reset(bench);
		if (bench->parts.phase == TIMER_FREE || bench_fresh(bench))
			want_ns = UINT64_MAX;
		else if (bench->parts.phase == TIMER_ARMED && bench_instant_ns(bench) > want_ns)
			want_ns = bench_instant_ns(bench);
		expect_eq(timer_true_ns(&bench->timers, SLOT, filed_ns[i]), want_ns);
		expect_slot(bench, unfiled_parts(bench->parts));
	}
}

START_TEST(true_instant_is_never_earlier_than_the_filing_and_a_free_slot_has_none)
{
	for_every_state(check_true_ns);
}
END_TEST

START_TEST(next_period_is_the_first_that_is_not_due_by_the_base_of_this_life)
{
	struct bench bench = { .parts = { .ticks = TICKS, .phase = TIMER_PENDING },
		               .periodic = true };
	struct timer_expiry expiry = { .interval_ns = INTERVAL_NS, .queue_slack = QUEUE };
	struct timer_period *period = &bench.slots.periods[SLOT];

	bench_reset(&bench);
	expiry.identity = bench.hot->identity;
	/* Due at 63990 + 10000 k, rounded up to 64 ns. */
	expect_eq(timer_next_period_ns(&bench.timers, SLOT, &expiry, 64000), 74048);
	expect_eq(timer_next_period_ns(&bench.timers, SLOT, &expiry, 74047), 74048);
	expect_eq(timer_next_period_ns(&bench.timers, SLOT, &expiry, 74048), 84032);
	u64_store_relaxed(&period->moved_ns, 64064);
	u64_store_relaxed(&period->moved_life, expiry.identity + (1 << 26));
	expect_eq(timer_next_period_ns(&bench.timers, SLOT, &expiry, 74048), 84032);
	u64_store_relaxed(&period->moved_life, expiry.identity);
	expect_eq(timer_next_period_ns(&bench.timers, SLOT, &expiry, 74048), 74112);
	expiry.queue_slack += UINT64_C(2000) * 65536;
	expect_eq(timer_next_period_ns(&bench.timers, SLOT, &expiry, 74048), 75776);
}
END_TEST

static void check_drop(struct bench *bench)
{
	struct parts parts = bench->parts;
	bool pending = parts.phase == TIMER_PENDING;
	bool waits = parts.phase >= TIMER_PENDING && !bench_idles(bench);

	for (unsigned i = 0; i < WRONG_HANDLES; i++)
		expect(!timer_waits(&bench->timers, wrong_handle(bench, i)));
	expect_eq(timer_waits(&bench->timers, bench->handle), waits);
	expect_slot(bench, parts);
	expect_eq(timer_drop(&bench->timers, SLOT), pending);
	if (pending) {
		parts.phase = TIMER_FREE;
		parts.ticks = NEVER;
	}
	expect_slot(bench, parts);
	expect(!timer_drop(&bench->timers, SLOT));
}

/*
 * Re-armed since it became pending, a timer has a word that may come back as a later life's. It is
 * left alone: it expires again, and is dropped then.
 */
START_TEST(drop_frees_what_is_pending_and_nothing_else)
{
	for_every_state(check_drop);
}
END_TEST

static void claim_is_confirmed(enum test_point point)
{
	struct parts parts = hooked->parts;

	if (point != hooked_point)
		return;
	test_point_hook = NULL;
	parts.pushed = 1;
	bench_set(hooked, parts);
}

/* The timer was re-armed, and expired at its old instant, before its claimant had pushed it. */
START_TEST(drop_goes_on_when_a_claim_is_confirmed_meanwhile)
{
	struct bench bench = { .parts = { .ticks = TICKS, .inbox = 1, .phase = TIMER_PENDING } };

	bench_reset(&bench);
	at_point(&bench, TEST_POINT_OWNER_BEFORE_CAS, claim_is_confirmed);
	expect(timer_drop(&bench.timers, SLOT));
	expect_slot(&bench, (struct parts){ .ticks = NEVER, .pushed = 1, .inbox = 1 });
}
END_TEST

/* ---- reading ---- */

static void check_view(const struct bench *bench, const struct timer_view *view)
{
	expect_eq(view->identity, bench_identity(bench, bench_generation(bench)));
	expect_eq(view->handle, bench->handle);
	expect_eq(view->deadline_ns, bench_deadline_ns(bench));
	expect_eq(view->interval_ns, bench->periodic ? INTERVAL_NS : 0);
	expect_eq(view->data, DATA);
	expect_eq(view->fn, FN);
}

static void check_read(struct bench *bench)
{
	bool live = bench->parts.phase != TIMER_FREE;
	bool armed = bench->parts.phase == TIMER_ARMED;
	struct timer_view view;
	uint32_t queue = 0;
	uint64_t ns;

	timer_view_begin(&bench->timers, SLOT, &view);
	expect_eq(view.word, parts_word(bench->parts));
	expect_eq(timer_read(&bench->timers, SLOT, &view, &queue), live);
	if (live) {
		check_view(bench, &view);
		expect_eq(queue, QUEUE);
		expect(timer_unchanged(bench->hot, &view));
	}
	expect_eq(timer_last(&bench->timers, SLOT), bench->handle);
	expect_eq(timer_deadline(&bench->timers, bench->handle, &ns), live);
	if (live)
		expect_eq(ns, bench_deadline_ns(bench));
	for (unsigned i = 0; i < WRONG_HANDLES; i++)
		expect(!timer_deadline(&bench->timers, wrong_handle(bench, i), &ns));
	expect_eq(timer_look_by_ns(&bench->timers, SLOT, parts_word(bench->parts)),
	          armed ? bench_instant_ns(bench) : UINT64_MAX);
	expect_slot(bench, bench->parts);
	if (!live)
		return;
	/* A view of an earlier life; then one of an earlier word. */
	view.handle = wrong_handle(bench, 0);
	expect(!timer_unchanged(bench->hot, &view));
	view.handle = bench->handle;
	view.word ^= 16;
	expect(!timer_unchanged(bench->hot, &view));
	expect_eq(view.word, parts_word(bench->parts));
	expect_slot(bench, bench->parts);
}

START_TEST(reading_tells_what_is_there_and_changes_nothing)
{
	for_every_state(check_read);
}
END_TEST

/* ---- a consumer ---- */

/* Reads the expiry that a consumer is to deliver; false if there is none. */
static bool view_expiry(struct bench *bench, struct timer_view *view)
{
	bench_reset(bench);
	timer_view_begin(&bench->timers, SLOT, view);
	for (unsigned i = 0; i < WRONG_HANDLES; i++) {
		struct timer_view wrong;

		timer_view_begin(&bench->timers, wrong_handle(bench, i) % (1 << 26), &wrong);
		expect(!timer_view_expiry(&bench->timers, wrong_handle(bench, i), &wrong));
	}
	if (!timer_view_expiry(&bench->timers, bench->handle, view)) {
		expect(bench->parts.phase < TIMER_PENDING || bench_idles(bench));
		return false;
	}
	expect(bench->parts.phase >= TIMER_PENDING && !bench_idles(bench));
	check_view(bench, view);
	return true;
}

static struct parts delivered_parts(const struct bench *bench)
{
	struct parts parts = bench->parts;

	parts.ticks = NEVER;
	parts.phase = bench->kept ? TIMER_PARKED : TIMER_FREE;
	return parts;
}

static void check_deliver_one_shot(struct bench *bench)
{
	struct parts other = bench->parts;
	struct timer_view view;
	uint64_t count;

	if (bench->periodic || !view_expiry(bench, &view))
		return;
	for (unsigned back = 0; back < 2; back++) {
		view_expiry(bench, &view);
		expect_outcome(
			bench,
			timer_deliver(&bench->timers, QUEUE, &view, DEADLINE_NS, back, &count),
			TIMER_DELIVERED, TIMER_NOTHING);
		expect_slot(bench, delivered_parts(bench));
	}
	view_expiry(bench, &view);
	other.tag = (other.tag + 1) % 8;
	bench_set(bench, other);
	expect_outcome(bench, timer_deliver(&bench->timers, QUEUE, &view, 0, false, &count),
	               TIMER_CHANGED, TIMER_NOTHING);
	expect_eq(view.word, parts_word(other));
	expect_slot(bench, other);
}

START_TEST(delivery_frees_one_shots_and_leaves_kept_timers_idle)
{
	for_every_state(check_deliver_one_shot);
}
END_TEST

/* The next life is hit: delivered if it may be this consumer's, and else undone. */
static void check_deliver_other(struct bench *bench, uint32_t queue)
{
	bool ours = queue == QUEUE && !bench->kept;
	struct parts undone = undone_parts(bench, delivered_parts(bench), false);
	struct timer_view view;
	uint64_t count = 0, identity;
	struct timer_outcome outcome;

	view_expiry(bench, &view);
	identity = next_life(bench);
	u64_store_relaxed(&bench->slots.cold[SLOT].data, 1717);
	u64_store_relaxed(&bench->want.cold[SLOT].data, 1717);
	outcome = timer_deliver(&bench->timers, queue, &view, 0, false, &count);
	if (!ours) {
		expect_outcome(bench, outcome, TIMER_CHANGED, left_of(bench->parts.pushed));
		expect_slot(bench, undone);
		return;
	}
	expect_outcome(bench, outcome, TIMER_DELIVERED, TIMER_NOTHING);
	expect_eq(view.identity, identity);
	expect_eq(view.handle, bench->handle + (UINT64_C(2) << 26));
	expect_eq(view.data, 1717);
	expect_slot(bench, delivered_parts(bench));
}

/* A life of another kind has come: what delivers the old one would be wrong for it. */
static void check_deliver_other_kind(struct bench *bench, uint64_t identity)
{
	struct timer_view view;
	uint64_t count;

	view_expiry(bench, &view);
	u64_store_relaxed(&bench->hot->identity, identity);
	u64_store_relaxed(&bench->want.hot[SLOT].identity, identity);
	expect_outcome(bench, timer_deliver(&bench->timers, QUEUE, &view, 0, false, &count),
	               TIMER_CHANGED, left_of(bench->parts.pushed));
	expect_slot(bench, undone_parts(bench, delivered_parts(bench), false));
}

static void check_deliver_others(struct bench *bench)
{
	if (bench->periodic || bench->parts.phase != TIMER_PENDING)
		return;
	check_deliver_other(bench, QUEUE);
	check_deliver_other(bench, QUEUE + 1);
	if (bench->kept) {
		check_deliver_other_kind(bench, UINT64_C(44) << 26);
		return;
	}
	check_deliver_other_kind(bench, UINT64_C(44) << 26 | 2); /* periodic */
	check_deliver_other_kind(bench, UINT64_C(45) << 26);     /* kept */
}

START_TEST(delivery_of_a_later_life_is_its_own_or_undone)
{
	for_every_state(check_deliver_others);
}
END_TEST

/* Instants, and what the periods due at 63990 + 10000 k, in ticks of 64, come to by then. */
static const struct {
	uint64_t now_ns, next_ns, count;
} periods[] = {
	{ 64000, 74048, 1 }, { 74047, 74048, 1 }, { 74048, 84032, 2 }, { 104001, 114048, 5 }
};

static void check_deliver_periodic(struct bench *bench, unsigned i, bool back, bool stale)
{
	bool told = back || bench->parts.phase == TIMER_PARKED;
	struct parts parts = bench->parts;
	struct timer_view view;
	struct timer_outcome outcome;
	uint64_t count = 0;

	parts.ticks = periods[i].next_ns / 64;
	parts.phase = TIMER_ARMED;
	parts.inbox |= told;
	view_expiry(bench, &view);
	if (stale)
		at_point(bench, TEST_POINT_CONSUME_BEFORE_REARM, life_changes);
	outcome = timer_deliver(&bench->timers, QUEUE, &view, periods[i].now_ns, back, &count);
	expect_eq(count, periods[i].count);
	if (stale) {
		expect_outcome(bench, outcome, TIMER_CHANGED, left_of(bench->parts.pushed));
		expect_slot(bench, undone_parts(bench, parts, false));
		return;
	}
	expect_outcome(bench, outcome, TIMER_DELIVERED,
	               told ? left_of(bench->parts.inbox) : TIMER_NOTHING);
	expect_slot(bench, parts);
}

static void check_periodic(struct bench *bench)
{
	struct parts other = bench->parts;
	struct timer_view view;
	uint64_t count;

	if (!bench->periodic || bench->parts.phase < TIMER_PENDING)
		return;
	for (unsigned i = 0; i < COUNT_OF(periods) * 4; i++)
		check_deliver_periodic(bench, i / 4, i % 2, i / 2 % 2);
	view_expiry(bench, &view);
	other.phase = TIMER_FREE;
	bench_set(bench, other);
	expect_outcome(bench,
	               timer_deliver(&bench->timers, QUEUE, &view, DEADLINE_NS, false, &count),
	               TIMER_CHANGED, TIMER_NOTHING);
	expect_eq(view.word, parts_word(other));
	expect_slot(bench, other);
}

START_TEST(delivery_arms_a_periodic_timer_for_its_next_period_and_counts)
{
	for_every_state(check_periodic);
}
END_TEST

/* The clock was set back to before the deadline. */
static void check_give_back(struct bench *bench)
{
	struct parts parts = bench->parts;
	struct timer_view view;
	uint64_t count;

	if (!view_expiry(bench, &view))
		return;
	parts.phase = TIMER_ARMED;
	parts.inbox = 1;
	expect_outcome(bench,
	               timer_deliver(&bench->timers, QUEUE, &view, DEADLINE_NS - 1, true, &count),
	               TIMER_GIVEN_BACK, left_of(bench->parts.inbox));
	expect_slot(bench, parts);
	/* A later life's is given back just so, but its push must be certain. */
	view_expiry(bench, &view);
	next_life(bench);
	expect_outcome(bench,
	               timer_deliver(&bench->timers, QUEUE, &view, DEADLINE_NS - 1, true, &count),
	               TIMER_GIVEN_BACK, left_of(bench->parts.pushed));
	expect_slot(bench, parts);
	view_expiry(bench, &view);
	parts.tag ^= 1;
	bench_set(bench, parts);
	expect_outcome(bench, timer_give_back(bench->hot, &view), TIMER_CHANGED, TIMER_NOTHING);
	expect_eq(view.word, parts_word(parts));
	expect_slot(bench, parts);
}

START_TEST(an_expiry_that_the_clock_was_set_back_over_is_given_back)
{
	for_every_state(check_give_back);
}
END_TEST

/* ---- the records ---- */

/* The owner's base holds for the life that it names, whatever it says of another. */
START_TEST(base_is_the_armers_unless_this_life_was_moved)
{
	uint64_t life = bench_identity(&(struct bench){ .periodic = true }, 7);
	struct timer_period period = { 0 };

	u64_store_relaxed(&period.first_ns, 111);
	u64_store_relaxed(&period.moved_ns, 64);
	expect_eq(period_base_ns(&period, life), 111);
	u64_store_relaxed(&period.moved_life, life);
	expect_eq(period_base_ns(&period, life), 64);
	expect_eq(period_base_ns(&period, life + (1 << 26)), 111);
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
	tests_add(arm_gives_a_free_slot_a_life_and_pushes_it_unless_it_is_filed_early_enough, 20);
	tests_add(arm_of_a_slot_never_used_pushes_it, 20);
	tests_add(takeover_pushes_only_if_the_filing_does_not_cover_the_deadline, 20);
	tests_add(rearm_moves_a_live_timer_and_tells_the_owner_of_what_may_come_earlier, 20);
	tests_add(move_moves_armed_one_shots_to_no_earlier_deadlines_and_nothing_else, 20);
	tests_add(move_of_a_later_life_is_asked_about_and_undone, 20);
	tests_add(cancel_frees_and_tells_the_owner_only_where_the_word_does_not_say_the_filing, 20);
	tests_add(undo_makes_a_later_lifes_word_what_it_was_whatever_the_owner_did, 20);
	tests_add(a_life_that_takes_the_slot_before_the_change_gets_its_word_back, 20);
	tests_add(a_decision_that_loses_the_race_decides_on_the_new_word, 20);
	tests_add(pushed_is_said_of_the_word_that_was_loaded_alone, 20);
	tests_add(look_takes_out_of_the_inbox_and_tells_where_to_file, 20);
	tests_add(expire_makes_pending_what_is_due_and_parks_what_was_not_delivered_for_a_period,
	          20);
	tests_add(expire_leaves_a_later_life_armed_that_is_not_due, 20);
	tests_add(true_instant_is_never_earlier_than_the_filing_and_a_free_slot_has_none, 20);
	tests_add(next_period_is_the_first_that_is_not_due_by_the_base_of_this_life, 20);
	tests_add(drop_frees_what_is_pending_and_nothing_else, 20);
	tests_add(drop_goes_on_when_a_claim_is_confirmed_meanwhile, 20);
	tests_add(reading_tells_what_is_there_and_changes_nothing, 20);
	tests_add(delivery_frees_one_shots_and_leaves_kept_timers_idle, 20);
	tests_add(delivery_of_a_later_life_is_its_own_or_undone, 20);
	tests_add(delivery_arms_a_periodic_timer_for_its_next_period_and_counts, 20);
	tests_add(an_expiry_that_the_clock_was_set_back_over_is_given_back, 20);
	tests_add(base_is_the_armers_unless_this_life_was_moved, 20);
	tests_add(records_are_as_small_as_promised, 20);
	return tests_run();
}
