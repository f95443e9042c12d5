/* SPDX-License-Identifier: MIT */
/*
 * Traps 1 to 4: a caller is stopped for ever inside arm, re-arm or cancel. The hub has an owner
 * thread. Law 6: a stopped caller delays only the timer of its own call, and no other thread.
 */
#include "stopped_thread.h"

#include "hub/hub.h"

/* The calls in which a caller can be stopped, with the test point at which it stops. */
static const struct {
	enum deed_kind what;
	enum test_point point;
} stops[] = {
	{ ARM, TEST_POINT_ARM_BEFORE_PUBLISH },    { ARM, TEST_POINT_SUBMIT_BEFORE_PUSH },
	{ ARM, TEST_POINT_SUBMIT_AFTER_PUSH },     { ARM, TEST_POINT_WAKE_BEFORE_RECORD },
	{ REARM, TEST_POINT_PAIR_HALF_READ },      { REARM, TEST_POINT_REARM_BEFORE_CAS },
	{ REARM, TEST_POINT_SUBMIT_BEFORE_PUSH },  { REARM, TEST_POINT_SUBMIT_AFTER_PUSH },
	{ REARM, TEST_POINT_WAKE_BEFORE_RECORD },  { CANCEL, TEST_POINT_CANCEL_BEFORE_CAS },
	{ CANCEL, TEST_POINT_CANCEL_BEFORE_FREE },
};

/*
 * The thread arms, re-arms or cancels a timer, and stops at the test point. The deadline of the
 * timer is far before and after the call.
 */
static void stop_caller(struct stopped_thread *a, struct rig *rig, unsigned stop, uint64_t after_ns)
{
	*a = (struct stopped_thread){ .deed = { .what = stops[stop].what,
		                                .hub = rig->hub,
		                                .queue = rig->queue,
		                                .at_ns = timerhub_now(rig->hub) + after_ns } };
	if (stops[stop].what != ARM)
		a->deed.timer =
			arm(rig->queue, SPEC(.expires_ns = FAR, .slack_ns = MS, .data = 'A'));
	/*
	 * Make the owner take the timer's slot from the inbox. If the slot stayed in the inbox, a
	 * re-arm of the timer would not push the slot.
	 */
	owner_looks(rig);
	expect_context("stop", stop, 0);
	stopped_thread_start(a, stops[stop].point);
}

/*
 * Lets the stopped thread continue. After its call has returned, the timer of the stopped thread
 * must have the right deadline.
 */
static void finish_caller(struct stopped_thread *a, struct rig *rig)
{
	stopped_thread_finish(a);
	expect_eq(a->deed.result, 0);
	expect_nothing(rig);
	if (a->deed.what == CANCEL) {
		expect_eq(timerhub_rearm(rig->hub, a->deed.timer, 0, 0), -ENOENT);
		return;
	}
	expect_eq(timerhub_rearm(rig->hub, a->deed.timer, 0, 0), 0);
	expect_event(rig, 'A');
	expect_nothing(rig);
}

/*
 * Trap 1: while thread A is stopped, thread B arms timers until it has gone through all cells of
 * the inbox. Thread B must get the event of each timer.
 */
START_TEST(trap_1_stopped_caller_hides_nobody)
{
	for (unsigned stop = 0; stop < COUNT_OF(stops); stop++) {
		struct rig rig = rig_open(200);
		unsigned rounds = scaled(700); /* the inbox has 256 cells for slots */
		struct stopped_thread a;

		stop_caller(&a, &rig, stop, FAR / 2);
		for (unsigned i = 0; i < rounds; i++) {
			expect_eq(timerhub_after(rig.queue, i % 4 * 10 * US, 'B', NULL), 0);
			expect_event(&rig, 'B');
		}
		finish_caller(&a, &rig);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(trap_1_stopped_caller_hides_no_cancel_and_no_rearm)
{
	for (unsigned stop = 0; stop < COUNT_OF(stops); stop++) {
		struct rig rig = rig_open(200);
		timerhub_timer moved = arm_at(rig.queue, timerhub_now(rig.hub) + FAR, 'B');
		timerhub_timer gone = arm_at(rig.queue, timerhub_now(rig.hub) + FAR, 'C');
		struct stopped_thread a;

		stop_caller(&a, &rig, stop, FAR / 2);
		expect_eq(timerhub_cancel(rig.hub, gone), 0);
		expect_eq(timerhub_rearm(rig.hub, moved, 0, 0), 0);
		expect_event(&rig, 'B');
		finish_caller(&a, &rig);
		rig_close(&rig);
	}
}
END_TEST

/*
 * Trap 2: thread A has claimed the push of its timer, and is stopped before the push. Thread B
 * moves A's timer to an earlier deadline, finds the push claimed, and does not push. When A
 * continues, A must compare B's deadline with the owner's promise. If A compared its own deadline,
 * A would not wake the owner, because A's deadline is later than the promise.
 */
static void check_trap_2(enum test_point point)
{
	struct rig rig = rig_open(8);
	uint64_t now_ns = timerhub_now(rig.hub);
	timerhub_timer shared = arm_at(rig.queue, now_ns + FAR, 'S');
	struct stopped_thread a = { .deed = { .what = REARM, .hub = rig.hub, .timer = shared } };
	uint64_t b_ns;

	/* the owner promises to drain the inbox by now_ns + FAR / 4 */
	(void)arm_at(rig.queue, now_ns + FAR / 4, 'U');
	owner_settles(rig.hub);
	a.deed.at_ns = now_ns + FAR / 2;
	stopped_thread_start(&a, point);
	b_ns = timerhub_now(rig.hub) + 2 * MS;
	expect_eq(timerhub_rearm(rig.hub, shared, b_ns, TIMERHUB_ABSOLUTE), 0);
	/*
	 * Thread B has woken the owner. If A is stopped before its push, the owner finds no entry
	 * in the inbox. If A is stopped after its push, the owner delivers the timer.
	 */
	owner_settles(rig.hub);
	stopped_thread_finish(&a);
	expect_eq(a.deed.result, 0);
	expect_eq(expect_event(&rig, 'S').expires_ns, b_ns);
	expect_nothing(&rig);
	rig_close(&rig);
}

START_TEST(trap_2_stopped_claimant_acts_on_the_latest_deadline)
{
	check_trap_2(TEST_POINT_SUBMIT_BEFORE_PUSH);
	check_trap_2(TEST_POINT_SUBMIT_AFTER_PUSH);
}
END_TEST

/* Arms timers that are due at once until no slot is left. Returns the number of armed timers. */
static unsigned arm_all(struct rig *rig)
{
	unsigned count = 0;

	while (timerhub_after(rig->queue, 0, 'B', NULL) == 0)
		count++;
	return count;
}

static void expect_all(struct rig *rig, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		expect_event(rig, 'B');
}

#define FEW 4

/*
 * Trap 3: wherever thread A is stopped, the slots that thread B gets must really be free. The
 * timers of B must expire while A is stopped, even if A has not pushed its slot.
 */
static void fill_and_empty(struct rig *rig, unsigned at_least)
{
	for (unsigned round = 0; round < 3; round++) {
		unsigned armed = arm_all(rig);

		expect_le(at_least, armed);
		expect_all(rig, armed);
	}
}

START_TEST(trap_3_slot_of_a_stopped_caller_is_not_recycled_too_early)
{
	for (unsigned stop = 0; stop < COUNT_OF(stops); stop++) {
		struct rig rig = rig_open(FEW);
		struct stopped_thread a;

		stop_caller(&a, &rig, stop, FAR / 2);
		fill_and_empty(&rig, FEW - 1);
		finish_caller(&a, &rig);
		fill_and_empty(&rig, FEW);
		rig_close(&rig);
	}
}
END_TEST

/*
 * Trap 3: a timer ends during thread A's call. Thread A has claimed the push of its timer, and is
 * stopped before the push. Another thread cancels A's timer. The next timer in the slot of A's
 * timer must not depend on A's push.
 */
START_TEST(trap_3_timer_cancelled_under_a_stopped_claimant)
{
	static const enum deed_kind whats[] = { ARM, REARM };

	for (unsigned i = 0; i < COUNT_OF(whats); i++) {
		struct rig rig = rig_open(FEW);
		struct stopped_thread a = {
			.deed = { .what = whats[i], .hub = rig.hub, .queue = rig.queue }
		};

		expect_context("what", i, 0);
		if (whats[i] == REARM)
			a.deed.timer = arm_at(rig.queue, timerhub_now(rig.hub) + 2 * FAR, 'A');
		owner_settles(rig.hub);
		a.deed.at_ns = timerhub_now(rig.hub) + FAR;
		stopped_thread_start(&a, TEST_POINT_SUBMIT_BEFORE_PUSH);
		expect_eq(timerhub_cancel(rig.hub, a.deed.timer), 0);
		fill_and_empty(&rig, FEW - 1);
		stopped_thread_finish(&a);
		owner_settles(rig.hub);
		fill_and_empty(&rig, FEW);
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/*
 * Trap 3: a timer is delivered during thread A's call. The owner has scheduled A's timer for its
 * old deadline, which passes during the call.
 */
static bool check_delivered_under_a_claimant(uint64_t margin_ns)
{
	struct rig rig = rig_open(FEW);
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	struct stopped_thread a = { .deed = { .what = REARM,
		                              .hub = rig.hub,
		                              .timer = arm_at(rig.queue, at_ns + MS, 'A'),
		                              .at_ns = at_ns } };
	bool in_time;

	owner_looks(&rig);
	if (timerhub_now(rig.hub) + 10 * MS > at_ns) {
		rig_close(&rig);
		return false;
	}
	stopped_thread_start(&a, TEST_POINT_SUBMIT_BEFORE_PUSH);
	in_time = timerhub_now(rig.hub) < at_ns;
	/*
	 * If the old deadline had passed before thread A moved its timer, the timer would wait for
	 * A's push.
	 */
	if (in_time) {
		expect_event(&rig, 'A');
		fill_and_empty(&rig, FEW - 1);
	}
	stopped_thread_finish(&a);
	expect_eq(a.deed.result, 0);
	if (!in_time)
		expect_event(&rig, 'A');
	owner_settles(rig.hub);
	fill_and_empty(&rig, FEW);
	expect_nothing(&rig);
	rig_close(&rig);
	return in_time;
}

START_TEST(trap_3_timer_delivered_under_a_stopped_claimant)
{
	until_in_time(check_delivered_under_a_claimant, MARGIN);
}
END_TEST

/*
 * Thread A is stopped after it has pushed a slot. The owner takes the slot from the inbox and
 * clears A's claim. Thread B claims a push of the slot, for A's timer or for another timer, and is
 * stopped before its push. When A continues, A must not confirm a push for B's claim. Otherwise the
 * slot's next timer would not be pushed, and would wait until B continues.
 */
static void check_confirmed(bool reused)
{
	struct rig rig = rig_manual(1);
	struct stopped_thread a = {
		.deed = { .what = ARM, .hub = rig.hub, .queue = rig.queue, .at_ns = FAR }
	};
	struct stopped_thread b = a;

	expect_context("reused", reused, 0);
	stopped_thread_start(&a, TEST_POINT_SUBMIT_AFTER_PUSH);
	advance(rig.hub, 1);
	b.deed.timer = a.deed.timer;
	if (reused)
		expect_eq(timerhub_cancel(rig.hub, a.deed.timer), 0);
	else
		b.deed.what = REARM;
	/* B's deadline is before the schedule entry, so B must claim a push */
	b.deed.at_ns = FAR - 1;
	stopped_thread_start(&b, TEST_POINT_SUBMIT_BEFORE_PUSH);
	stopped_thread_finish(&a);
	expect_eq(timerhub_cancel(rig.hub, b.deed.timer), 0);
	(void)arm_at(rig.queue, 640, 'N');
	expect_at(&rig, 'N', 640);
	stopped_thread_finish(&b);
	rig_close(&rig);
}

START_TEST(trap_3_push_is_confirmed_for_no_claim_after_a_look)
{
	check_confirmed(false);
	check_confirmed(true);
}
END_TEST

/*
 * Thread A has pushed its slot, and is stopped before it confirms the push. Thread B arms another
 * timer in the same slot. No thread has confirmed a push, so B pushes the slot again, and is
 * stopped too. Thread A continues, and confirms the push for B's claim. After A's confirmation, the
 * next timer in the slot needs no push, and the owner must find the next timer.
 */
START_TEST(trap_3_push_is_confirmed_for_the_claim_of_a_timer_after)
{
	struct rig rig = rig_manual(1);
	struct stopped_thread a = {
		.deed = { .what = ARM, .hub = rig.hub, .queue = rig.queue, .at_ns = FAR }
	};
	struct stopped_thread b = a;
	const struct timer *slot = &rig.hub->arena.timers.pairs[0];

	stopped_thread_start(&a, TEST_POINT_SUBMIT_AFTER_PUSH);
	expect_eq(timerhub_cancel(rig.hub, a.deed.timer), 0);
	stopped_thread_start(&b, TEST_POINT_SUBMIT_AFTER_PUSH);
	expect(!state_pushed(u64_load_relaxed(&slot->state)));
	stopped_thread_finish(&a);
	expect(state_pushed(u64_load_relaxed(&slot->state)));
	expect_eq(timerhub_cancel(rig.hub, b.deed.timer), 0);
	(void)arm_at(rig.queue, 640, 'N');
	expect_at(&rig, 'N', 640);
	stopped_thread_finish(&b);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/*
 * Trap 4: thread A has woken the owner, and is stopped before it records the wake. The owner wakes,
 * finds that A's timer has ended, and sleeps until the same deadline as before. After that, thread
 * A continues and records its wake. Although A records its wake late, the callers after A must
 * still wake the owner.
 */
static void check_trap_4(bool cancelled)
{
	struct rig rig = rig_open(8);
	uint64_t now_ns = timerhub_now(rig.hub);
	struct stopped_thread a = { .deed = { .what = ARM, .queue = rig.queue } };
	uint64_t wakes;

	(void)arm_at(rig.queue, now_ns + FAR, 'U');
	owner_settles(rig.hub);
	a.deed.at_ns = timerhub_now(rig.hub) + (cancelled ? FAR / 2 : 0);
	stopped_thread_start(&a, TEST_POINT_WAKE_BEFORE_RECORD);
	if (cancelled)
		expect_eq(timerhub_cancel(rig.hub, a.deed.timer), 0);
	else
		expect_event(&rig, 'A');
	owner_settles(rig.hub);
	/*
	 * The wake for B's timer makes the owner schedule all waiting entries, and sleep until FAR
	 * again.
	 */
	(void)arm_at(rig.queue, timerhub_now(rig.hub) + MS, 'B');
	expect_event(&rig, 'B');
	owner_settles(rig.hub);
	stopped_thread_finish(&a);
	wakes = stats_of(rig.hub).submit_wakes;
	for (unsigned i = 0; i < 3; i++) {
		(void)arm_at(rig.queue, timerhub_now(rig.hub) + MS, 'B');
		expect_event(&rig, 'B');
		owner_settles(rig.hub);
	}
	expect_eq(stats_of(rig.hub).submit_wakes, wakes + 3);
	expect_nothing(&rig);
	rig_close(&rig);
}

START_TEST(trap_4_late_record_of_a_wake_silences_nobody)
{
	check_trap_4(false);
	check_trap_4(true);
}
END_TEST

/*
 * Callers are stopped at the same time, one at each test point of the table stops[]. The callers
 * stay stopped while thread B arms timers.
 */
START_TEST(callers_stopped_everywhere_delay_nobody)
{
	struct rig rig = rig_open(64);
	struct stopped_thread stopped[COUNT_OF(stops)];
	unsigned rounds = scaled(400);

	for (unsigned stop = 0; stop < COUNT_OF(stops); stop++)
		stop_caller(&stopped[stop], &rig, stop, FAR / (2 + stop));
	for (unsigned i = 0; i < rounds; i++) {
		timerhub_timer timer;

		expect_eq(timerhub_after(rig.queue, FAR, 'B', &timer), 0);
		expect_eq(timerhub_rearm(rig.hub, timer, i % 3 * 10 * US, 0), 0);
		expect_event(&rig, 'B');
	}
	for (unsigned stop = 0; stop < COUNT_OF(stops); stop++)
		stopped_thread_finish(&stopped[stop]);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

static struct {
	struct rig rig;
	timerhub_timer timer;
	uint64_t at_ns;
} nudge;

/* Re-arms the timer whose slot the caller is about to push, as another thread might. */
static void nudge_before_push(enum test_point point)
{
	if (point != TEST_POINT_SUBMIT_BEFORE_PUSH || nudge.timer == 0)
		return;
	expect_eq(timerhub_rearm(nudge.rig.hub, nudge.timer, nudge.at_ns, TIMERHUB_ABSOLUTE), 0);
}

/*
 * The owner does not empty the inbox, and each timer is re-armed just before its slot is pushed.
 * The inbox must have a cell for each timer that is armed. The inbox has 4,096 cells. If each
 * re-arm pushed its slot a second time, the inbox would need 6,144 cells. The arming thread would
 * then hang.
 */
START_TEST(law_7_inbox_has_room_whatever_moves_under_a_push)
{
	enum { TIMERS = 3072 };
	static timerhub_timer timers[TIMERS];
	void (*hook)(enum test_point point) = test_point_hook;

	nudge.rig = rig_manual(TIMERS);
	nudge.at_ns = FAR / 4;
	for (unsigned i = 0; i < TIMERS; i++)
		timers[i] = arm_at(nudge.rig.queue, FAR, i);
	advance(nudge.rig.hub, 1);
	test_point_hook = nudge_before_push;
	for (unsigned i = 0; i < TIMERS; i++) {
		nudge.timer = timers[i];
		expect_eq(timerhub_rearm(nudge.rig.hub, timers[i], FAR / 2, TIMERHUB_ABSOLUTE), 0);
	}
	test_point_hook = hook;
	for (unsigned i = 0; i < TIMERS; i++)
		expect_eq(timerhub_cancel(nudge.rig.hub, timers[i]), 0);
	for (unsigned i = 0; i < TIMERS; i++)
		timers[i] = arm_at(nudge.rig.queue, 64, i);
	advance(nudge.rig.hub, 64);
	expect_eq(stats_of(nudge.rig.hub).expired, TIMERS);
	rig_close(&nudge.rig);
}
END_TEST

int main(int argc, char **argv)
{
	stopped_threads_begin("traps of callers", argc, argv);
	tests_add(trap_1_stopped_caller_hides_nobody, 60);
	tests_add(trap_1_stopped_caller_hides_no_cancel_and_no_rearm, 60);
	tests_add(trap_2_stopped_claimant_acts_on_the_latest_deadline, 60);
	tests_add(trap_3_slot_of_a_stopped_caller_is_not_recycled_too_early, 60);
	tests_add(trap_3_timer_cancelled_under_a_stopped_claimant, 60);
	tests_add(trap_3_timer_delivered_under_a_stopped_claimant, 60);
	tests_add(trap_3_push_is_confirmed_for_no_claim_after_a_look, 60);
	tests_add(trap_3_push_is_confirmed_for_the_claim_of_a_timer_after, 60);
	tests_add(trap_4_late_record_of_a_wake_silences_nobody, 60);
	tests_add(callers_stopped_everywhere_delay_nobody, 60);
	tests_add(law_7_inbox_has_room_whatever_moves_under_a_push, 60);
	return tests_run();
}
