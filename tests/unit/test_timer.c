/* SPDX-License-Identifier: MIT */
/*
 * Tests the functions of timer.c that decide about a timer. The test calls each function for every
 * state of a slot, in plain memory. To build and read a pair (deadline and state of a slot), the
 * test uses pair_fields.h instead of the library's functions. A function must change only the
 * fields that its decision concerns, and must change no other slot. One test interrupts each
 * decision between any two atomic steps, and makes another thread's decision at this point. The
 * memory and the return values must be as if the two decisions had been made one after the other.
 */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair_fields.h"
#include "timer/timer.h"

#define SLOTS 4
#define SLOT 2
#define GENERATION 42
/* distance between the handles of two consecutive generations of a slot */
#define GENERATION_STEP (UINT64_C(1) << 26)
#define NEVER UINT64_MAX
#define MAX_NS ((UINT64_C(1) << 63) - 128)
#define DEADLINE_NS 64001
#define SLACK_NS 2000
#define SLACKENED_NS 65536 /* instant of a timer with DEADLINE_NS and SLACK_NS */
#define INTERVAL_NS 10000
#define QUEUE 3
#define DATA 0x1234
#define FN 0x5678

void (*step_hook)(void);

struct slots {
	struct timer pairs[SLOTS];
	struct timer_cold cold[SLOTS];
	atomic_u64 intervals_ns[SLOTS];
};

struct bench {
	struct slots slots;
	struct slots want; /* the expected slots after the decision */
	struct timers timers;
	struct timer *timer;
	struct parts parts; /* the pair of SLOT before the decision */
	uint64_t handle;    /* the handle of SLOT's timer before the decision */
	struct pair after;  /* the pair of SLOT that the last decision returned */
};

static void slots_set(struct slots *slots, struct pair pair)
{
	u64_store_relaxed(&slots->pairs[SLOT].deadline_ns, pair.deadline_ns);
	u64_store_relaxed(&slots->pairs[SLOT].state, pair.state);
}

/* Sets the pair of SLOT to `parts`, and resets all other memory. */
static void bench_reset(struct bench *bench)
{
	struct slots *slots = &bench->slots;
	struct timer_cold *cold = &slots->cold[SLOT];

	step_hook = NULL;
	memset(slots, 0, sizeof(*slots));
	for (unsigned i = 0; i < SLOTS; i++)
		u64_store_relaxed(&slots->pairs[i].deadline_ns, NEVER);
	bench->timers = (struct timers){ slots->pairs, slots->cold, slots->intervals_ns, 700 };
	bench->timer = &slots->pairs[SLOT];
	bench->handle = bench->parts.generation * GENERATION_STEP + SLOT;
	slots_set(slots, parts_pair(bench->parts));
	u64_store_relaxed(&cold->data, DATA);
	u64_store_relaxed(&cold->fn, FN);
	u64_store_relaxed(&slots->intervals_ns[SLOT], INTERVAL_NS);
	u64_store_relaxed(&cold->queue_slack, bench->parts.slack * SLACK_NS * 65536 + QUEUE);
	memcpy(&bench->want, slots, sizeof(*slots));
	expect_context("deadline, state", bench->parts.deadline_ns, parts_pair(bench->parts).state);
}

static uint64_t instant_ns(const struct bench *bench)
{
	return bench->parts.slack && bench->parts.deadline_ns != NEVER ? SLACKENED_NS
	                                                               : bench->parts.deadline_ns;
}

static void expect_pair(struct pair pair, struct parts parts)
{
	expect_eq(pair.deadline_ns, parts.deadline_ns);
	expect_eq(pair.state, parts_pair(parts).state);
}

static struct pair slot_pair(const struct bench *bench)
{
	return (struct pair){ u64_load_relaxed(&bench->timer->deadline_ns),
		              u64_load_relaxed(&bench->timer->state) };
}

/* Expects that SLOT has this pair, and that all other memory equals `want`. */
static void expect_slot(struct bench *bench, struct parts parts)
{
	expect_pair(slot_pair(bench), parts);
	slots_set(&bench->want, parts_pair(parts));
	expect(memcmp(&bench->slots, &bench->want, sizeof(bench->want)) == 0);
}

static void expect_outcome(const struct bench *bench, struct timer_outcome outcome, int result,
                           enum timer_left left)
{
	expect_eq(outcome.result, result);
	expect_eq(outcome.left, left);
	if (left != TIMER_NOTHING)
		expect_pair(bench->after, parts_of(slot_pair(bench)));
}

/* Returns the work that a caller must do after a change that the owner must see. */
static enum timer_left left_of(uint64_t was_claimed)
{
	return was_claimed ? TIMER_PUSH_AGAIN : TIMER_PUSH;
}

/*
 * Returns whether a slot can be in this state: phase, deadline and kind of its timer must fit
 * together.
 */
static bool possible(const struct parts *parts)
{
	bool never = parts->deadline_ns == NEVER;

	switch (parts->phase) {
	case TIMER_PENDING:
		return !never;
	case TIMER_OVERDUE:
		return !never && parts->periodic;
	case TIMER_IDLE:
		return never && parts->kept;
	default:
		return true;
	}
}

/* Calls `test` with each phase of each kind of timer, with and without claim. */
static void for_every_state(void (*test)(struct bench *bench))
{
	unsigned count = 0;

	for (unsigned i = 0; i < 5 * 2 * 3 * 2 * 2; i++) {
		struct bench bench = { .parts = { .deadline_ns = i % 2 ? NEVER : DEADLINE_NS,
			                          .generation = GENERATION,
			                          .kept = i / 2 % 3 == 1,
			                          .periodic = i / 2 % 3 == 2,
			                          .slack = i / 6 % 2,
			                          .claimed = i / 12 % 2,
			                          .phase = i / 24 } };

		if (!possible(&bench.parts))
			continue;
		bench_reset(&bench);
		test(&bench);
		count++;
	}
	expect_eq(count, 68);
}

/* No function accepts a handle of another timer or another slot, or the handle 0. */
static void check_wrong_handles(struct bench *bench)
{
	const struct timers *timers = &bench->timers;
	const uint64_t handles[] = { bench->handle - GENERATION_STEP,
		                     bench->handle + GENERATION_STEP,
		                     bench->handle ^ UINT64_C(1) << 63, bench->handle - 1, 0 };

	for (unsigned i = 0; i < COUNT_OF(handles); i++) {
		uint64_t handle = handles[i], slot = handle % GENERATION_STEP, ns;
		struct timer_view view;

		expect_outcome(bench, timer_rearm(timers, handle, NEVER, &bench->after), -ENOENT,
		               TIMER_NOTHING);
		expect(!timer_move(&bench->slots.pairs[slot], handle, NEVER));
		expect_eq(timer_cancel(timers, handle, TIMER_ANY_QUEUE), -ENOENT);
		expect(!timer_deadline(timers, handle, &ns));
		expect(!timer_waits(timers, handle));
		view.pair = timer_guess(&timers->pairs[slot]);
		expect(!timer_view_expiry(timers, handle, &view));
	}
	expect_slot(bench, bench->parts);
}

TEST(handles_of_other_timers_are_refused, 20)
{
	for_every_state(check_wrong_handles);
}

/* ---- a caller's decisions ---- */

static const uint64_t new_ns[] = {
	0, DEADLINE_NS - 1, DEADLINE_NS, DEADLINE_NS + 1, MAX_NS, NEVER
};

/* Returns one of six kinds of timer: one-shot, kept and periodic, each with and without slack. */
static struct timer_arming arming_of(unsigned kind, uint64_t deadline_ns)
{
	return (struct timer_arming){ .queue = 9,
		                      .deadline_ns = deadline_ns,
		                      .interval_ns = kind % 3 == 2 ? 77 : 0,
		                      .slack_ns = kind / 3 * 11u,
		                      .data = 101,
		                      .fn = 102,
		                      .kept = kind % 3 == 1 };
}

static void check_armed(struct bench *bench, unsigned kind, uint64_t deadline_ns)
{
	struct timer_arming arming = arming_of(kind, deadline_ns);
	const struct parts *was = &bench->parts;
	bool quiet = !was->claimed && was->deadline_ns <= deadline_ns;
	struct timer_cold *cold = &bench->want.cold[SLOT];
	struct parts parts = { .deadline_ns = deadline_ns,
		               .generation = was->generation == 0 ? 701 : GENERATION + 1,
		               .kept = kind % 3 == 1,
		               .periodic = kind % 3 == 2,
		               .slack = kind / 3,
		               .claimed = !quiet,
		               .phase = TIMER_ARMED };
	uint64_t handle = 0;

	expect_outcome(bench, timer_arm(&bench->timers, SLOT, &arming, &handle, &bench->after), 0,
	               quiet ? TIMER_NOTHING : left_of(was->claimed));
	expect_eq(handle, parts.generation * GENERATION_STEP + SLOT);
	u64_store_relaxed(&cold->data, 101);
	u64_store_relaxed(&cold->fn, 102);
	if (arming.interval_ns > 0)
		u64_store_relaxed(&bench->want.intervals_ns[SLOT], arming.interval_ns);
	u64_store_relaxed(&cold->queue_slack, arming.slack_ns * 65536 + 9);
	expect_slot(bench, parts);
}

static void check_arm(struct bench *bench)
{
	if (bench->parts.phase != TIMER_FREE)
		return;
	for (unsigned i = 0; i < COUNT_OF(new_ns) * 6; i++) {
		bench_reset(bench);
		check_armed(bench, i % 6, new_ns[i / 6]);
	}
}

TEST(arm_pushes_a_free_slot_unless_it_is_scheduled_early_enough, 20)
{
	struct bench unused = { .parts = { .deadline_ns = NEVER } };

	for_every_state(check_arm);
	bench_reset(&unused);
	check_armed(&unused, 0, DEADLINE_NS);
	bench_reset(&unused);
	expect_eq(timer_arm(&unused.timers, SLOT, &(struct timer_arming){ .queue = 9 }, NULL,
	                    &unused.after)
	                  .left,
	          TIMER_PUSH);
}

static void check_rearm(struct bench *bench)
{
	const struct parts *was = &bench->parts;

	for (unsigned i = 0; i < COUNT_OF(new_ns); i++) {
		bool submit =
			was->phase != TIMER_ARMED || new_ns[i] < was->deadline_ns || was->claimed;
		struct parts parts = *was;
		struct timer_outcome outcome;

		parts.deadline_ns = new_ns[i];
		parts.phase = TIMER_ARMED;
		parts.claimed |= submit;
		bench_reset(bench);
		outcome = timer_rearm(&bench->timers, bench->handle, new_ns[i], &bench->after);
		if (was->phase == TIMER_FREE) {
			expect_outcome(bench, outcome, -ENOENT, TIMER_NOTHING);
			expect_slot(bench, *was);
			continue;
		}
		expect_outcome(bench, outcome, was->phase == TIMER_IDLE,
		               submit ? left_of(was->claimed) : TIMER_NOTHING);
		expect_slot(bench, parts);
		bench_reset(bench);
		expect_eq(timer_move(bench->timer, bench->handle, new_ns[i]), !submit);
		expect_slot(bench, submit ? *was : parts);
	}
}

TEST(rearm_tells_the_owner_of_what_may_come_earlier_and_move_does_the_rest, 20)
{
	for_every_state(check_rearm);
}

/*
 * The slot of a cancelled ARMED timer may keep a schedule entry up to the timer's instant. The
 * timer's instant becomes the deadline in the slot's pair.
 */
static void check_cancel(struct bench *bench)
{
	static const uint32_t queues[] = { TIMER_ANY_QUEUE, QUEUE, QUEUE + 1 };

	for (unsigned i = 0; i < COUNT_OF(queues); i++) {
		bool found = bench->parts.phase != TIMER_FREE && queues[i] != QUEUE + 1;
		struct parts parts = bench->parts;

		if (found) {
			parts.deadline_ns = parts.phase == TIMER_ARMED ? instant_ns(bench) : NEVER;
			parts.phase = TIMER_FREE;
		}
		bench_reset(bench);
		expect_eq(timer_cancel(&bench->timers, bench->handle, queues[i]),
		          found ? 0 : -ENOENT);
		expect_slot(bench, parts);
	}
}

TEST(cancel_frees_and_says_what_the_slot_is_scheduled_for, 20)
{
	for_every_state(check_cancel);
}

/* ---- reading ---- */

static void check_view(const struct bench *bench, const struct timer_view *view)
{
	expect_pair(view->pair, bench->parts);
	expect_eq(view->handle, bench->handle);
	expect_eq(view->interval_ns, bench->parts.periodic * INTERVAL_NS);
	expect_eq(view->data, DATA);
	expect_eq(view->fn, FN);
}

static void check_read(struct bench *bench)
{
	bool live = bench->parts.phase != TIMER_FREE;
	struct parts parts = bench->parts;
	struct timer_view view;
	uint32_t queue = 0;
	uint64_t ns;

	expect_eq(timer_waits(&bench->timers, bench->handle),
	          parts.phase == TIMER_PENDING || parts.phase == TIMER_OVERDUE);
	expect_eq(timer_last(&bench->timers, SLOT), bench->handle);
	expect_eq(timer_deadline(&bench->timers, bench->handle, &ns), live);
	if (live)
		expect_eq(ns, parts.deadline_ns);
	view.pair = timer_guess(bench->timer);
	expect_eq(timer_read(&bench->timers, SLOT, &view, &queue), live);
	if (live) {
		check_view(bench, &view);
		expect_eq(queue, QUEUE);
		expect(timer_change(bench->timer, &view.pair, view.pair));
		parts.claimed ^= 1;
		slots_set(&bench->slots, parts_pair(parts));
		expect(!timer_change(bench->timer, &view.pair, view.pair));
		expect_pair(view.pair, parts);
	}
	expect_slot(bench, parts);
}

TEST(reading_tells_what_is_there_and_changes_nothing, 20)
{
	for_every_state(check_read);
}

/* ---- the owner's decisions ---- */

static void check_look(struct bench *bench)
{
	struct parts parts = bench->parts;
	uint64_t at_ns = 17;
	bool changes = parts.claimed && parts.phase <= TIMER_ARMED;

	expect_eq(timer_look(&bench->timers, SLOT, &at_ns), changes);
	if (changes)
		expect_eq(at_ns, parts.phase == TIMER_ARMED ? instant_ns(bench) : NEVER);
	if (changes && parts.phase == TIMER_FREE)
		parts.deadline_ns = NEVER;
	parts.claimed = 0;
	expect_slot(bench, parts);
}

TEST(look_takes_out_of_the_inbox_and_tells_when_to_schedule, 20)
{
	for_every_state(check_look);
}

/*
 * Returns `parts` as they are after the owner has removed the slot from the schedule. The deadline
 * of a FREE slot is NEVER after its removal from the schedule. The owner drops the entry only if no
 * push of the slot is claimed.
 */
static struct parts unscheduled(struct parts parts)
{
	if (parts.phase == TIMER_FREE && !parts.claimed)
		parts.deadline_ns = NEVER;
	return parts;
}

static void check_expire(struct bench *bench)
{
	static const uint64_t by_ns[] = { 0, 64000, 64001, 65535, 65536, 74000, 74001, NEVER - 1 };
	struct timer_expiry expiry;

	if (bench->parts.phase == TIMER_PENDING && !bench->parts.periodic)
		return; /* a PENDING one-shot timer is not scheduled */
	for (unsigned i = 0; i < COUNT_OF(by_ns); i++) {
		enum timer_expired turn = TIMER_IS_NEITHER;
		struct parts parts = unscheduled(bench->parts);

		if (parts.phase == TIMER_PENDING)
			parts.phase = TIMER_OVERDUE;
		if (parts.phase == TIMER_ARMED) {
			bool due = instant_ns(bench) <= by_ns[i];

			turn = due ? TIMER_IS_PENDING : TIMER_IS_LATER;
			if (due)
				parts.phase = TIMER_PENDING;
			if (due && parts.periodic && by_ns[i] >= DEADLINE_NS + INTERVAL_NS)
				parts.phase = TIMER_OVERDUE;
		}
		bench_reset(bench);
		expect_eq(timer_expire(&bench->timers, SLOT, by_ns[i], by_ns[i], &expiry), turn);
		expect_slot(bench, parts);
		if (turn == TIMER_IS_NEITHER)
			continue;
		expect_pair(expiry.pair, bench->parts);
		expect_eq(expiry.at_ns, instant_ns(bench));
		expect_eq(expiry.interval_ns, parts.periodic * INTERVAL_NS);
		expect_eq(expiry.queue_slack, parts.slack * SLACK_NS * 65536 + QUEUE);
	}
}

TEST(expire_makes_pending_what_is_due_and_overdue_what_was_not_delivered_for_a_period, 20)
{
	for_every_state(check_expire);
}

static void check_true_ns(struct bench *bench)
{
	static const uint64_t filed_ns[] = { 0, DEADLINE_NS, SLACKENED_NS, 10 * DEADLINE_NS };

	for (unsigned i = 0; i < COUNT_OF(filed_ns); i++) {
		uint64_t want_ns = filed_ns[i];

		if (bench->parts.phase == TIMER_FREE)
			want_ns = NEVER;
		else if (bench->parts.phase == TIMER_ARMED && instant_ns(bench) > want_ns)
			want_ns = instant_ns(bench);
		bench_reset(bench);
		expect_eq(timer_true_ns(&bench->timers, SLOT, filed_ns[i]), want_ns);
		expect_slot(bench, unscheduled(bench->parts));
	}
}

TEST(true_instant_is_never_earlier_than_the_entry_and_a_free_slot_has_none, 20)
{
	for_every_state(check_true_ns);
}

TEST(next_period_is_the_first_that_is_not_due_put_off_within_the_slack, 20)
{
	static const struct {
		uint64_t deadline_ns, slack_ns, now_ns, next_ns;
	} rows[] = {
		{ 64001, 0, 64001, 74001 },
		{ 64001, 0, 74000, 74001 },
		{ 64001, 0, 74001, 84001 },
		{ 64001, 2000, 74000, 75776 },
		{ MAX_NS - 9999, 2000, MAX_NS, NEVER },
		{ MAX_NS - 10000, 2000, MAX_NS - 1, MAX_NS },
	};

	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		struct timer_expiry expiry = { .pair.deadline_ns = rows[i].deadline_ns,
			                       .interval_ns = INTERVAL_NS,
			                       .queue_slack = rows[i].slack_ns * 65536 + QUEUE };

		expect_context("row", i, 0);
		expect_eq(timer_next_period_ns(&expiry, rows[i].now_ns), rows[i].next_ns);
	}
}

static void check_drop(struct bench *bench)
{
	struct parts parts = bench->parts;
	bool waits = parts.phase == TIMER_PENDING || parts.phase == TIMER_OVERDUE;

	expect_eq(timer_drop(&bench->timers, SLOT), waits);
	if (waits) {
		parts.phase = TIMER_FREE;
		parts.deadline_ns = NEVER;
	}
	expect_slot(bench, parts);
}

TEST(drop_frees_what_is_undelivered_and_nothing_else, 20)
{
	for_every_state(check_drop);
}

/* ---- a consumer's decisions ---- */

/* Reads the expiry of the timer, as a consumer does. Returns false if the timer has no expiry. */
static bool view_expiry(struct bench *bench, struct timer_view *view)
{
	bool waits = bench->parts.phase == TIMER_PENDING || bench->parts.phase == TIMER_OVERDUE;

	bench_reset(bench);
	view->pair = timer_guess(bench->timer);
	expect_eq(timer_view_expiry(&bench->timers, bench->handle, view), waits);
	if (waits)
		check_view(bench, view);
	return waits;
}

/*
 * The clock values at which a consumer delivers. If `early` is true, the clock was set back, and
 * shows a time before the timer's deadline.
 */
static const struct delivery {
	uint64_t now_ns, next_ns, count;
	bool early;
} deliveries[] = {
	{ 64000, 64001, 0, true },  { 64001, 74001, 1, false },   { 74000, 74001, 1, false },
	{ 74001, 84001, 2, false }, { 104005, 114001, 5, false },
};

static void check_delivery(struct bench *bench, const struct delivery *delivery, bool goes_back)
{
	bool given_back = goes_back && delivery->early;
	struct parts parts = bench->parts;
	bool submit = given_back || (parts.periodic && parts.phase == TIMER_OVERDUE);
	struct timer_outcome outcome;
	struct timer_view view;
	uint64_t count = 0;

	if (!view_expiry(bench, &view) || (delivery->early && !goes_back && parts.periodic))
		return;
	outcome = timer_deliver(&bench->timers, &view, delivery->now_ns, goes_back, &count);
	bench->after = view.after;
	expect_outcome(bench, outcome, given_back ? TIMER_GIVEN_BACK : TIMER_DELIVERED,
	               submit ? left_of(parts.claimed) : TIMER_NOTHING);
	if (given_back || parts.periodic) {
		expect_eq(count, delivery->count);
		parts.deadline_ns = delivery->next_ns;
		parts.phase = TIMER_ARMED;
		parts.claimed |= submit;
	} else {
		parts.deadline_ns = NEVER;
		parts.phase = parts.kept ? TIMER_IDLE : TIMER_FREE;
	}
	expect_slot(bench, parts);
}

static void check_deliver(struct bench *bench)
{
	for (unsigned i = 0; i < COUNT_OF(deliveries) * 2; i++)
		check_delivery(bench, &deliveries[i / 2], i % 2);
}

TEST(delivery_frees_idles_arms_for_the_next_period_or_gives_back, 20)
{
	for_every_state(check_deliver);
}

/* ---- two decisions at once ---- */

/* The return values of a decision. Unused words are 0. */
struct said {
	uint64_t words[7];
	uint64_t filed_ns; /* instant for which the decision schedules the slot, or 1 for none */
};

static void say_outcome(struct said *said, struct timer_outcome outcome, struct pair after)
{
	said->words[0] = (uint64_t)outcome.result;
	said->words[1] = outcome.left;
	if (outcome.left != TIMER_NOTHING) {
		said->words[2] = after.deadline_ns;
		said->words[3] = after.state;
	}
}

static void say_view(struct said *said, const struct timer_view *view, uint64_t more)
{
	said->words[4] = view->handle;
	said->words[5] = view->pair.deadline_ns ^ view->interval_ns << 20;
	said->words[6] = view->data ^ view->fn << 16 ^ more << 32;
}

static void say_arming(struct bench *bench, struct said *said, const struct timer_arming *arming)
{
	struct pair after;
	struct timer_outcome outcome =
		timer_arm(&bench->timers, SLOT, arming, &said->words[4], &after);

	say_outcome(said, outcome, after);
}

static void do_arm(struct bench *bench, struct said *said, uint64_t at_ns)
{
	struct timer_arming arming = arming_of(3, at_ns);

	if (bench->parts.phase == TIMER_FREE) /* a free slot belongs to the arming thread */
		say_arming(bench, said, &arming);
}

/* Re-arms the timer as timerhub_rearm() does. */
static void do_rearm(struct bench *bench, struct said *said, uint64_t at_ns)
{
	struct timer_outcome outcome;
	struct pair after;

	if (timer_move(bench->timer, bench->handle, at_ns))
		return;
	outcome = timer_rearm(&bench->timers, bench->handle, at_ns, &after);
	say_outcome(said, outcome, after);
}

static void do_cancel(struct bench *bench, struct said *said, uint64_t at_ns)
{
	(void)at_ns;
	said->words[0] = (uint64_t)timer_cancel(&bench->timers, bench->handle, QUEUE);
}

/*
 * Cancels the timer, and arms a periodic timer of another queue in its slot. The new timer has
 * slack if and only if the cancelled timer has none.
 */
static void do_reuse(struct bench *bench, struct said *said, uint64_t at_ns)
{
	struct timer_arming arming = arming_of(bench->parts.slack ? 2 : 5, at_ns);

	said->words[5] = (uint64_t)timer_cancel(&bench->timers, bench->handle, TIMER_ANY_QUEUE);
	if (said->words[5] == 0)
		say_arming(bench, said, &arming);
}

static void do_read(struct bench *bench, struct said *said, uint64_t at_ns)
{
	struct timer_view view;
	uint32_t queue;

	(void)at_ns;
	view.pair = timer_guess(bench->timer);
	do {
		if (!timer_read(&bench->timers, SLOT, &view, &queue))
			return;
	} while (!timer_change(bench->timer, &view.pair, view.pair));
	say_view(said, &view, queue);
}

static void do_deadline(struct bench *bench, struct said *said, uint64_t at_ns)
{
	uint64_t ns;

	(void)at_ns;
	if (timer_deadline(&bench->timers, bench->handle, &ns))
		*said = (struct said){ { 1, ns }, said->filed_ns };
}

static void do_look(struct bench *bench, struct said *said, uint64_t at_ns)
{
	said->words[0] = timer_look(&bench->timers, SLOT, &at_ns);
	if (said->words[0] == 1)
		said->words[1] = said->filed_ns = at_ns;
}

static void do_expire(struct bench *bench, struct said *said, uint64_t by_ns)
{
	struct timer_expiry expiry;

	if (bench->parts.phase == TIMER_PENDING && !bench->parts.periodic)
		return; /* a PENDING one-shot timer is not scheduled */
	said->filed_ns = NEVER;
	said->words[0] = timer_expire(&bench->timers, SLOT, by_ns, by_ns, &expiry);
	if (said->words[0] == TIMER_IS_LATER)
		said->filed_ns = expiry.at_ns;
	if (said->words[0] != TIMER_IS_PENDING)
		return;
	said->words[1] = expiry.pair.deadline_ns;
	said->words[2] = expiry.pair.state;
	said->words[3] = expiry.interval_ns;
	said->words[4] = expiry.queue_slack;
	if (expiry.interval_ns > 0)
		said->filed_ns = timer_next_period_ns(&expiry, by_ns);
}

static void do_rest(struct bench *bench, struct said *said, uint64_t filed_ns)
{
	said->filed_ns = timer_true_ns(&bench->timers, SLOT, filed_ns);
}

static void do_drop(struct bench *bench, struct said *said, uint64_t at_ns)
{
	(void)at_ns;
	said->words[0] = timer_drop(&bench->timers, SLOT);
}

/*
 * Delivers the timer as drain_dispatch.c does. If `now_ns` is before the deadline, do_deliver()
 * tells timer_deliver() that the clock can go back.
 */
static void do_deliver(struct bench *bench, struct said *said, uint64_t now_ns)
{
	struct timer_outcome outcome;
	struct timer_view view;
	uint64_t count = 0;

	view.pair = timer_guess(bench->timer);
	do {
		if (!timer_view_expiry(&bench->timers, bench->handle, &view)) {
			said->words[0] = 99;
			return;
		}
		outcome =
			timer_deliver(&bench->timers, &view, now_ns, now_ns < DEADLINE_NS, &count);
	} while (outcome.result == TIMER_CHANGED);
	say_outcome(said, outcome, view.after);
	say_view(said, &view, count);
}

static const struct act {
	const char *name;
	void (*run)(struct bench *bench, struct said *said, uint64_t at_ns);
	uint64_t at_ns;
	/* true if the owner makes this decision; an owner makes only one decision at a time */
	bool owners;
} acts[] = {
	{ "arm", do_arm, DEADLINE_NS, false },
	{ "re-arm earlier", do_rearm, 500, false },
	{ "re-arm later", do_rearm, 80000, false },
	{ "cancel", do_cancel, 0, false },
	{ "read", do_read, 0, false },
	{ "deadline", do_deadline, 0, false },
	{ "deliver", do_deliver, 86000, false },
	{ "give back", do_deliver, DEADLINE_NS - 1, false },
	{ "look", do_look, 0, true },
	{ "expire too early", do_expire, DEADLINE_NS - 1, true },
	{ "expire", do_expire, 70000, true },
	{ "rest", do_rest, 2, true },
	{ "drop", do_drop, 0, true },
	/*
	 * Each of the two acts named "reuse" makes two decisions, a cancel and an arm. The test
	 * does not interrupt these two acts.
	 */
	{ "reuse earlier", do_reuse, 500, false },
	{ "reuse later", do_reuse, 90000, false },
};
#define ACTS COUNT_OF(acts)
#define SINGLE_ACTS (ACTS - 2)

/* The memory and the return values after two decisions have been made. */
struct end {
	struct slots slots;
	struct said said[2];
};

static struct {
	struct bench *bench;
	struct end *end;
	const struct act *act;
	unsigned steps; /* number of steps of the first act before the second act is made */
	bool over;
} between;

static void act_between(void)
{
	if (between.steps-- > 0)
		return;
	step_hook = NULL;
	between.act->run(between.bench, &between.end->said[1], between.act->at_ns);
	between.over = true;
}

/*
 * Expects that the two decisions have lost no timer. A slot without a claimed push must be
 * scheduled at its deadline or earlier.
 */
static void expect_not_lost(const struct bench *bench, const struct said *said)
{
	struct parts parts = parts_of(slot_pair(bench));
	uint64_t slack_ns = u64_load_relaxed(&bench->slots.cold[SLOT].queue_slack) / 65536;

	if (!parts.claimed && parts.phase == TIMER_FREE)
		expect_le(said->filed_ns, parts.deadline_ns);
	if (!parts.claimed && parts.phase == TIMER_ARMED)
		expect_le(said->filed_ns, timer_slacken_ns(parts.deadline_ns, slack_ns));
}

/*
 * Runs the act `second` before the step number `steps` of the act `first`. If `first` has no step
 * of this number, runs `second` after `first`, and returns false.
 */
static bool run_both(struct bench *bench, const struct act *first, const struct act *second,
                     unsigned steps, struct end *end)
{
	*end = (struct end){ .said = { { .filed_ns = 1 }, { .filed_ns = 1 } } };
	bench_reset(bench);
	between.bench = bench;
	between.end = end;
	between.act = second;
	between.steps = steps;
	between.over = false;
	step_hook = act_between;
	first->run(bench, &end->said[0], first->at_ns);
	step_hook = NULL;
	if (!between.over)
		second->run(bench, &end->said[1], second->at_ns);
	expect_not_lost(bench, &end->said[first->owners ? 0 : 1]);
	memcpy(&end->slots, &bench->slots, sizeof(end->slots));
	for (unsigned i = 0; i < 2; i++)
		end->said[i].filed_ns = 0;
	return between.over;
}

static void check_both(struct bench *bench, const struct act *first, const struct act *second)
{
	static char names[64];
	struct end before, after, end;
	bool more = true;

	(void)snprintf(names, sizeof(names), "%s | %s: state, steps", first->name, second->name);
	(void)run_both(bench, first, second, 0, &before);
	(void)run_both(bench, first, second, UINT32_MAX, &after);
	for (unsigned steps = 0; more; steps++) {
		expect_context(names, parts_pair(bench->parts).state, steps);
		more = run_both(bench, first, second, steps, &end);
		expect(memcmp(&end, &before, sizeof(end)) == 0 ||
		       memcmp(&end, &after, sizeof(end)) == 0);
	}
}

static void check_acts(struct bench *bench)
{
	for (unsigned i = 0; i < SINGLE_ACTS; i++)
		for (unsigned j = 0; j < ACTS; j++)
			if (!(acts[i].owners && acts[j].owners) &&
			    !(acts[i].run == do_arm && acts[j].run == do_arm))
				check_both(bench, &acts[i], &acts[j]);
}

TEST(each_decision_is_one_step_whatever_another_thread_decides_in_between, 100)
{
	for_every_state(check_acts);
}

/* ---- possible changes ---- */

/*
 * Returns whether timer_check_change() aborts a process that changes a pair from `before` to
 * `after`. The process is a child of the test.
 */
static bool change_traps(struct parts before, struct parts after)
{
	pid_t child = fork();
	int status;

	expect_le(0, child);
	if (child == 0) {
		(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		(void)signal(SIGILL, SIG_DFL);
		(void)signal(SIGTRAP, SIG_DFL);
		timer_check_change(parts_pair(before), parts_pair(after));
		_exit(0);
	}
	expect_eq(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		expect(WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
	else
		expect_eq(status, 0);
	return WIFSIGNALED(status);
}

TEST(phases_follow_each_other_as_drawn, 20)
{
	static const char phases[] = "FAPOI";
	static const char *const follow[] = { "FA", "FAPO", "FAPOI", "FAO", "FAI" };

	for (unsigned i = 0; i < 25; i++) {
		unsigned from = i / 5, to = i % 5;
		bool idle = from == TIMER_IDLE || to == TIMER_IDLE;
		struct parts before = { .deadline_ns = from == TIMER_IDLE ? NEVER : DEADLINE_NS,
			                .kept = idle,
			                .periodic = !idle,
			                .phase = from };
		struct parts after = before;

		after.deadline_ns = to == TIMER_IDLE ? NEVER : DEADLINE_NS;
		after.phase = to;
		after.generation = from == TIMER_FREE && to == TIMER_ARMED;
		expect_context("from, to", from, to);
		expect_eq(change_traps(before, after), !strchr(follow[from], phases[to]));
	}
}

#define PARTS(phase_, deadline_ns_, ...)                                                           \
	{                                                                                          \
		.phase = TIMER_##phase_, .deadline_ns = deadline_ns_, __VA_ARGS__                  \
	}

TEST(illegal_changes_stop_a_program_of_the_tests, 20)
{
	static const struct {
		bool traps;
		struct parts before, after;
	} rows[] = {
		/*
		 * A pair must not have a deadline beyond the largest deadline, neither before a
		 * change nor after.
		 */
		{ true, PARTS(ARMED, 7), PARTS(ARMED, MAX_NS + 1) },
		{ true, PARTS(ARMED, MAX_NS + 1), PARTS(ARMED, 7) },
		{ false, PARTS(ARMED, 7), PARTS(ARMED, MAX_NS) },
		{ true, PARTS(FREE, 7),
		  PARTS(ARMED, 7, .generation = 1, .kept = 1, .periodic = 1) },
		{ true, PARTS(ARMED, NEVER), PARTS(PENDING, NEVER) },
		{ true, PARTS(PENDING, 7, .periodic = 1), PARTS(OVERDUE, NEVER, .periodic = 1) },
		{ true, PARTS(PENDING, 7), PARTS(OVERDUE, 7) },
		{ true, PARTS(PENDING, 7, .kept = 1), PARTS(IDLE, 7, .kept = 1) },
		{ true, PARTS(PENDING, 7), PARTS(IDLE, NEVER) },
		/*
		 * If a change arms a free slot, it must begin a new generation, and may set flags.
		 */
		{ false, PARTS(FREE, 7), PARTS(ARMED, 7, .generation = 1, .kept = 1, .slack = 1) },
		{ true, PARTS(FREE, 7), PARTS(ARMED, 7) },
		{ true, PARTS(ARMED, 7), PARTS(ARMED, 7, .generation = 1) },
		{ true, PARTS(ARMED, 7), PARTS(FREE, 7, .generation = 1) },
		{ true, PARTS(ARMED, 7), PARTS(ARMED, 7, .kept = 1) },
		{ true, PARTS(ARMED, 7), PARTS(ARMED, 7, .slack = 1) },
		{ true, PARTS(ARMED, 7, .periodic = 1), PARTS(ARMED, 7) },
		/* Only timer_look() may clear CLAIMED, and it changes no phase. */
		{ false, PARTS(ARMED, 7, .claimed = 1), PARTS(ARMED, 7) },
		{ true, PARTS(ARMED, 7, .claimed = 1), PARTS(PENDING, 7) },
		{ true, PARTS(FREE, 7, .claimed = 1), PARTS(ARMED, 7, .generation = 1) },
	};

	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		expect_context("row", i, 0);
		expect_eq(change_traps(rows[i].before, rows[i].after), rows[i].traps);
	}
}

/* A cache line holds four pairs. With fewer pairs in a cache line, the library would be slower. */
TEST(records_are_as_small_as_promised, 20)
{
	expect_eq(sizeof(struct timer), 16);
	expect_le(sizeof(struct timer) + sizeof(struct timer_cold) + sizeof(struct timer_filing),
	          48);
}
