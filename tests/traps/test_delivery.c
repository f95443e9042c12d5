/* SPDX-License-Identifier: MIT */
/*
 * Consumers, and the owner before them, stopped between the steps of a delivery. On manual hubs the
 * advancing thread is the owner.
 */
#include "puppet.h"

#include <stdio.h>
#include <string.h>

static struct puppet puppet_of(struct rig *rig, enum deed_kind what)
{
	return (struct puppet){ .deed = { .what = what,
		                          .hub = rig->hub,
		                          .queue = rig->queue,
		                          .max = 8,
		                          .at_ns = ARRIVES } };
}

static void expect_events(const struct puppet *puppet, unsigned count, const char *data)
{
	expect_eq(puppet->deed.result, count);
	for (unsigned i = 0; i < count; i++)
		expect_eq(puppet->deed.events[i].data, data[i]);
}

/* ---- law 9: the fd, while a consumer clears it ---- */

/*
 * An event is published after the consumer found the queue empty and before it clears the signal.
 * The second look finds the event.
 */
START_TEST(law_9_expiry_before_the_clear_is_found)
{
	struct rig rig = rig_manual(8);
	struct puppet drainer = puppet_of(&rig, DRAIN);

	(void)arm_at(rig.queue, 128, 'X');
	(void)arm_at(rig.queue, 256, 'Y');
	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CLEAR);
	advance(rig.hub, 256);
	puppet_finish(&drainer);
	expect_events(&drainer, 2, "XY");
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

START_TEST(law_9_expiry_after_the_clear_is_found_and_the_fd_is_cleared_again)
{
	struct rig rig = rig_manual(8);
	struct puppet drainer = puppet_of(&rig, DRAIN);

	(void)arm_at(rig.queue, 128, 'X');
	(void)arm_at(rig.queue, 256, 'Y');
	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_AFTER_CLEAR);
	expect(!queue_readable(rig.queue));
	advance(rig.hub, 256);
	expect(queue_readable(rig.queue));
	puppet_finish(&drainer);
	expect_events(&drainer, 2, "XY");
	expect(!queue_readable(rig.queue));
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/*
 * While one drain is stopped, another takes events. The stopped drain must not clear the signal of
 * a third event.
 */
START_TEST(law_9_second_consumer_is_served_while_the_first_is_stopped)
{
	static const enum test_point points[] = { TEST_POINT_CONSUME_BEFORE_CLEAR,
		                                  TEST_POINT_CONSUME_AFTER_CLEAR };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		struct rig rig = rig_manual(8);
		struct puppet drainer = puppet_of(&rig, DRAIN);

		(void)arm_at(rig.queue, 128, 'X');
		(void)arm_at(rig.queue, 256, 'Y');
		(void)arm_at(rig.queue, 320, 'Z');
		advance(rig.hub, 128);
		puppet_start(&drainer, points[i]);
		advance(rig.hub, 256);
		expect(queue_readable(rig.queue));
		expect_event(&rig, 'Y');
		advance(rig.hub, 320);
		expect(queue_readable(rig.queue));
		puppet_finish(&drainer);
		expect_events(&drainer, 2, "XZ");
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* A drain that stops at its maximum must signal again if events are left. */
START_TEST(law_9_partial_drain_tells_of_what_came_meanwhile)
{
	static const enum test_point points[] = { TEST_POINT_CONSUME_BEFORE_CLEAR,
		                                  TEST_POINT_CONSUME_AFTER_CLEAR };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		struct rig rig = rig_manual(8);
		struct puppet drainer = puppet_of(&rig, i == 0 ? DRAIN : DISPATCH);

		drainer.deed.max = 1;
		(void)arm_at(rig.queue, 128, 'X');
		(void)arm_at(rig.queue, 256, 'Y');
		advance(rig.hub, 128);
		puppet_start(&drainer, points[i]);
		advance(rig.hub, 256);
		puppet_finish(&drainer);
		expect_eq(drainer.deed.result, 1);
		expect(queue_readable(rig.queue));
		expect_event(&rig, 'Y');
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* ---- cancel_sync: between the delivery and the mark that the callback runs ---- */

static atomic_uint called;

static void count_call(const struct timerhub_event *event)
{
	atomic_fetch_add(&called, (unsigned)event->count);
}

/* The callback has not begun, and can no longer be stopped. The canceller must wait for it. */
START_TEST(cancel_sync_waits_for_a_callback_about_to_begin)
{
	for (unsigned interval_ns = 0; interval_ns <= 100; interval_ns += 100) {
		struct rig rig = rig_manual(8);
		struct puppet dispatcher = puppet_of(&rig, DISPATCH);
		struct puppet canceller = puppet_of(&rig, CANCEL_SYNC);
		struct timerhub_spec spec = { .size = sizeof(spec),
			                      .expires_ns = 128,
			                      .interval_ns = interval_ns,
			                      .fn = count_call };

		atomic_store(&called, 0);
		expect_eq(timerhub_arm(rig.queue, &spec, &canceller.deed.timer), 0);
		advance(rig.hub, 128);
		puppet_start(&dispatcher, TEST_POINT_DISPATCH_BEFORE_BEGIN);
		puppet_start(&canceller, TEST_POINT_CALLBACK_BEFORE_NAP);
		expect_eq(atomic_load(&called), 0);
		atomic_store(&canceller.released, true);
		sleep_ns(20 * MS);
		expect(!atomic_load(&canceller.over));
		puppet_finish(&dispatcher);
		puppet_finish(&canceller);
		expect_eq(atomic_load(&called), 1);
		expect_eq(canceller.deed.result, interval_ns > 0 ? 0 : -ENOENT);
		rig_close(&rig);
	}
}
END_TEST

/* ---- wait: between looking and blocking ---- */

START_TEST(waiter_about_to_block_does_not_miss_an_expiry)
{
	struct rig rig = rig_manual(8);
	struct puppet waiter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	(void)arm_at(rig.queue, 128, 'X');
	puppet_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	advance(rig.hub, 128);
	puppet_finish(&waiter);
	expect_events(&waiter, 1, "X");
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

START_TEST(waiter_about_to_block_does_not_miss_an_interrupt)
{
	struct rig rig = rig_manual(8);
	struct puppet waiter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	puppet_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	timerhub_interrupt(rig.queue);
	puppet_finish(&waiter);
	expect_eq(waiter.deed.result, -ECANCELED);
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	rig_close(&rig);
}
END_TEST

/*
 * An expiry may wake a waiter that an interrupt is ending. Another waiter gets the event then, even
 * if the interrupting thread is stopped before it has woken a waiter.
 */
START_TEST(interrupted_waiter_passes_the_wake_on)
{
	struct rig rig = rig_manual(8);
	struct puppet former = puppet_of(&rig, WAIT);
	struct puppet interrupter = puppet_of(&rig, INTERRUPT);
	struct puppet latter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	(void)arm_at(rig.queue, 128, 'X');
	puppet_start(&former, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&former.released, true);
	sleep_ns(5 * MS); /* the waiter blocks by now, most likely */
	puppet_start(&interrupter, TEST_POINT_INTERRUPT_HALFWAY);
	puppet_start(&latter, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&latter.released, true);
	sleep_ns(5 * MS);
	advance(rig.hub, 128);
	puppet_finish(&latter);
	expect_events(&latter, 1, "X");
	expect_lt(monotonic_ns(), before_ns + ARRIVES); /* woken, not timed out */
	puppet_finish(&interrupter);
	puppet_finish(&former);
	expect_eq(former.deed.result, -ECANCELED);
	rig_close(&rig);
}
END_TEST

static void *close_queue(void *arg)
{
	timerhub_queue_close(arg);
	return NULL;
}

START_TEST(waiter_about_to_block_does_not_miss_the_closing_which_waits_for_it)
{
	struct rig rig = rig_manual(8);
	struct puppet waiter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();
	pthread_t closer;

	puppet_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	thread_start(&closer, close_queue, rig.queue);
	sleep_ns(5 * MS);
	puppet_finish(&waiter);
	thread_join(closer);
	expect_eq(waiter.deed.result, -ESHUTDOWN);
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	rig_close(&rig);
}
END_TEST

/* Two waiters, one of them stopped. An event published for both reaches the other waiter. */
START_TEST(stopped_waiter_does_not_take_the_wake_of_another)
{
	struct rig rig = rig_manual(8);
	struct puppet stopped = puppet_of(&rig, WAIT);
	struct puppet other = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	other.deed.max = 1;
	(void)arm_at(rig.queue, 128, 'X');
	(void)arm_at(rig.queue, 256, 'Y');
	puppet_start(&stopped, TEST_POINT_WAIT_BEFORE_SLEEP);
	puppet_start(&other, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&other.released, true);
	sleep_ns(5 * MS); /* the waiter blocks by now, most likely */
	advance(rig.hub, 128);
	puppet_finish(&other);
	expect_events(&other, 1, "X");
	expect_lt(monotonic_ns(), before_ns + ARRIVES); /* woken, not timed out */
	advance(rig.hub, 256);
	puppet_finish(&stopped);
	expect_events(&stopped, 1, "Y");
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* ---- laws 2, 3, 4: a delivery against cancel and re-arm ---- */

START_TEST(law_3_cancel_wins_over_a_stopped_delivery)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_at(rig.queue, 128, 'X');

	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	expect_eq(timerhub_cancel(rig.hub, timer), -ENOENT);
	/* The slot is armed and pending again while the delivery has read the old timer. */
	(void)arm_at(rig.queue, 128, 'Y');
	advance(rig.hub, 128);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "Y");
	expect_nothing(&rig);
	expect_eq(stats_of(rig.hub).delivered, 1);
	expect_eq(stats_of(rig.hub).cancelled, 1);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(law_4_rearm_wins_over_a_stopped_delivery)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_at(rig.queue, 128, 'X');

	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	expect_at(&rig, 'X', 640);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* The timer is re-armed and expires again. It is delivered once, for its new deadline. */
START_TEST(law_2_expiry_renewed_under_a_stopped_delivery_comes_once)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_at(rig.queue, 128, 'X');

	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
	advance(rig.hub, 640);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "X");
	expect_eq(drainer.deed.events[0].expires_ns, 640);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* ---- periodic timers ---- */

START_TEST(periodic_delivery_survives_being_overdue_under_its_hands)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct timerhub_event event;

	(void)arm_periodic(&rig, 100, 1000, 'P');
	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	advance(rig.hub, 5500); /* the next period is due, so the timer is OVERDUE */
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "P");
	expect_eq(drainer.deed.events[0].expires_ns, 100);
	expect_eq(drainer.deed.events[0].count, 6); /* 100, 1100 … 5100 */
	advance(rig.hub, 6099);
	expect_nothing(&rig);
	advance(rig.hub, 6100);
	event = expect_event(&rig, 'P');
	expect_eq(event.expires_ns, 6100);
	expect_eq(event.count, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(periodic_cancelled_under_a_stopped_delivery_is_gone)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_periodic(&rig, 100, 1000, 'P');

	advance(rig.hub, 128);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	(void)arm_at(rig.queue, 2048, 'X');
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	advance(rig.hub, 2047);
	expect_nothing(&rig);
	advance(rig.hub, 2048);
	expect_event(&rig, 'X');
	advance(rig.hub, 20000);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* Period k after this deadline, and some more, must come at their times. */
static void expect_phase(struct rig *rig, uint64_t first_ns, uint64_t interval_ns, uint64_t k)
{
	for (uint64_t end = k + 5; k < end; k++)
		expect_at(rig, 'P', first_ns + k * interval_ns);
}

/* The timer is re-armed to a time around its next period. It must come then, with a new phase. */
static void check_rearm_under_delivery(uint64_t first_ns, uint64_t at_ns, enum test_point point)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_periodic(&rig, first_ns, 1000, 'P');

	expect_context("first, re-armed to", first_ns, at_ns);
	advance(rig.hub, first_ns);
	puppet_start(&drainer, point);
	expect_eq(timerhub_rearm(rig.hub, timer, at_ns, TIMERHUB_ABSOLUTE), 0);
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	expect_phase(&rig, at_ns, 1000, 0);
	rig_close(&rig);
}

START_TEST(law_4_periodic_rearmed_under_a_stopped_delivery_has_a_new_phase)
{
	for (uint64_t at_ns = 1099; at_ns <= 1101; at_ns++) {
		check_rearm_under_delivery(100, at_ns, TEST_POINT_PAIR_HALF_READ);
		check_rearm_under_delivery(100, at_ns, TEST_POINT_CONSUME_BEFORE_CAS);
		check_rearm_under_delivery(100, at_ns, TEST_POINT_CONSUME_BEFORE_REARM);
	}
}
END_TEST

/*
 * Two consumers hold handles of one expiry. One handle is older than a re-arm. One consumer
 * delivers the expiry, and the phase is exact.
 */
START_TEST(law_7_two_consumers_of_one_expiry_keep_the_phase)
{
	for (uint64_t interval_ns = 1001; interval_ns < 1004; interval_ns++) {
		struct rig rig = rig_manual(1);
		struct puppet drainer = puppet_of(&rig, DRAIN);
		timerhub_timer timer = arm_periodic(&rig, 64, interval_ns, 'P');

		expect_context("interval", interval_ns, 0);
		advance(rig.hub, 64);
		expect_eq(timerhub_rearm(rig.hub, timer, 6400, TIMERHUB_ABSOLUTE), 0);
		advance(rig.hub, 6400);
		drainer.deed.max = 1;
		puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
		advance(rig.hub, 6400 + interval_ns);
		expect_eq(expect_event(&rig, 'P').count, 2);
		expect_at(&rig, 'P', 6400 + 2 * interval_ns);
		puppet_finish(&drainer);
		expect_eq(drainer.deed.result, 0);
		expect_phase(&rig, 6400, interval_ns, 3);
		rig_close(&rig);
	}
}
END_TEST

/*
 * The timer is delivered while a re-arm has begun. The delivery counts the one period that has
 * passed.
 */
START_TEST(periodic_delivered_under_a_stopped_rearm_counts_right)
{
	struct rig rig = rig_manual(1);
	struct puppet rearmer = puppet_of(&rig, REARM);

	rearmer.deed.timer = arm_periodic(&rig, 100, 1000, 'P');
	rearmer.deed.at_ns = 6401;
	advance(rig.hub, 128);
	puppet_start(&rearmer, TEST_POINT_REARM_BEFORE_CAS);
	expect_eq(expect_event(&rig, 'P').count, 1);
	puppet_finish(&rearmer);
	expect_eq(rearmer.deed.result, 0);
	expect_phase(&rig, 6401, 1000, 0);
	rig_close(&rig);
}
END_TEST

/*
 * During a delivery the owner takes the slot out of the inbox. A thread stopped in a call on the
 * earlier timer has pushed the slot late. The owner's look must not count as a re-arm.
 */
static void check_look_under_delivery(enum test_point point)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet rearmer = puppet_of(&rig, REARM);
	timerhub_timer former = arm_at(rig.queue, 1000000, 'F');

	expect_context("point", point, 0);
	advance(rig.hub, 10);
	rearmer.deed.timer = former;
	rearmer.deed.at_ns = 6400;
	puppet_start(&rearmer, TEST_POINT_SUBMIT_BEFORE_PUSH);
	expect_eq(timerhub_cancel(rig.hub, former), 0);
	(void)arm_periodic(&rig, 100, 1000, 'P');
	advance(rig.hub, 128);
	puppet_start(&drainer, point);
	puppet_finish(&rearmer);
	advance(rig.hub, 200);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "P");
	expect_eq(drainer.deed.events[0].expires_ns, 100);
	expect_phase(&rig, 100, 1000, 1);
	rig_close(&rig);
}

START_TEST(periods_keep_their_phase_when_looked_at_under_a_stopped_delivery)
{
	check_look_under_delivery(TEST_POINT_CONSUME_BEFORE_CAS);
	check_look_under_delivery(TEST_POINT_CONSUME_BEFORE_REARM);
}
END_TEST

/*
 * A consumer has read that an expiry is pending. Before it reads the deadline, the timer is
 * re-armed, and it may expire again before the delivery. The push of the first re-arm is claimed
 * throughout, so the state word is unchanged.
 */
START_TEST(law_7_periods_are_not_counted_from_a_deadline_that_is_not_due)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet rearmer = puppet_of(&rig, REARM);
	timerhub_timer timer = arm_periodic(&rig, 1000, 1000, 'P');

	advance(rig.hub, 10);
	rearmer.deed.timer = timer;
	rearmer.deed.at_ns = 500;
	puppet_start(&rearmer, TEST_POINT_SUBMIT_BEFORE_PUSH);
	advance(rig.hub, 1000); /* scheduled for this time, due since 500 */
	puppet_start(&drainer, TEST_POINT_PAIR_HALF_READ);
	expect_eq(timerhub_rearm(rig.hub, timer, 1400, TIMERHUB_ABSOLUTE), 0);
	puppet_go_on_if_it_comes(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	advance(rig.hub, 1500);
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	expect_eq(expect_event(&rig, 'P').count, 1);
	puppet_finish(&rearmer);
	expect_phase(&rig, 1400, 1000, 1);
	rig_close(&rig);
}
END_TEST

/* Re-armed to its next period, by a thread that was stopped before or by another thread. */
static void check_rearm_to_the_next_period(uint64_t first_ns, bool stopped)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet rearmer = puppet_of(&rig, REARM);
	timerhub_timer timer = arm_periodic(&rig, first_ns, 1000, 'P');
	uint64_t at_ns = first_ns + 1000;

	expect_context("first, stopped", first_ns, stopped);
	rearmer.deed.timer = timer;
	rearmer.deed.at_ns = at_ns;
	advance(rig.hub, first_ns);
	if (stopped)
		puppet_start(&rearmer, TEST_POINT_REARM_BEFORE_CAS);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	if (stopped)
		puppet_finish(&rearmer);
	else
		expect_eq(timerhub_rearm(rig.hub, timer, at_ns, TIMERHUB_ABSOLUTE), 0);
	advance(rig.hub, at_ns - 1);
	expect_nothing(&rig);
	puppet_finish(&drainer);
	expect_phase(&rig, at_ns, 1000, 0);
	rig_close(&rig);
}

START_TEST(law_7_periodic_rearmed_to_its_next_period_has_a_new_phase)
{
	check_rearm_to_the_next_period(100, false);
	check_rearm_to_the_next_period(100, true);
}
END_TEST

/* ---- the owner between reading, pair and outbox ---- */

/*
 * The owner has found the timer due. The expiry is withdrawn, and the timer has another deadline.
 */
START_TEST(law_4_owner_expires_what_it_has_read_or_nothing)
{
	for (uint64_t at_ns = 64; at_ns <= 256; at_ns += 64)
		for (unsigned reused = 0; reused < 2; reused++) {
			struct rig rig = rig_manual(1);
			struct puppet owner = puppet_of(&rig, ADVANCE);
			timerhub_timer timer = arm_at(rig.queue, 128, 'X');

			expect_context("at, reused", at_ns, reused);
			advance(rig.hub, 1);
			owner.deed.at_ns = 192;
			puppet_start(&owner, TEST_POINT_OWNER_BEFORE_CAS);
			if (reused) {
				expect_eq(timerhub_cancel(rig.hub, timer), 0);
				(void)arm_at(rig.queue, at_ns, 'X');
			} else {
				expect_eq(timerhub_rearm(rig.hub, timer, at_ns, TIMERHUB_ABSOLUTE),
				          0);
			}
			puppet_finish(&owner);
			if (at_ns > 192)
				expect_at(&rig, 'X', at_ns);
			else if (advance(rig.hub, 192) > 0)
				expect_eq(expect_event(&rig, 'X').expires_ns, at_ns);
			expect_nothing(&rig);
			rig_close(&rig);
		}
}
END_TEST

/* The timer is pending and not yet in a queue. It is cancelled, and its slot is reused at once. */
START_TEST(law_3_cancel_before_the_owner_publishes)
{
	for (uint64_t interval_ns = 0; interval_ns <= 1000; interval_ns += 1000) {
		struct rig rig = rig_manual(1);
		struct puppet owner = puppet_of(&rig, ADVANCE);
		timerhub_timer timer = arm_periodic(&rig, 128, interval_ns, 'X');

		expect_context("interval", interval_ns, 0);
		owner.deed.at_ns = 128;
		puppet_start(&owner, TEST_POINT_OWNER_BEFORE_PUBLISH);
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
		(void)arm_at(rig.queue, 512, 'Y');
		puppet_finish(&owner);
		expect_nothing(&rig);
		advance(rig.hub, 511);
		expect_nothing(&rig);
		advance(rig.hub, 512);
		expect_event(&rig, 'Y');
		advance(rig.hub, 10000);
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(law_4_rearm_before_the_owner_publishes)
{
	for (uint64_t interval_ns = 0; interval_ns <= 1000; interval_ns += 1000) {
		struct rig rig = rig_manual(1);
		struct puppet owner = puppet_of(&rig, ADVANCE);
		timerhub_timer timer = arm_periodic(&rig, 128, interval_ns, 'X');

		expect_context("interval", interval_ns, 0);
		owner.deed.at_ns = 128;
		puppet_start(&owner, TEST_POINT_OWNER_BEFORE_PUBLISH);
		expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
		puppet_finish(&owner);
		expect_nothing(&rig);
		expect_at(&rig, 'X', 640);
		expect_nothing(&rig);
		advance(rig.hub, 1640);
		if (interval_ns > 0)
			expect_eq(expect_event(&rig, 'X').expires_ns, 1640);
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* The time in between is not specified, but a second thread must not advance. */
START_TEST(second_thread_is_not_let_into_advance)
{
	struct rig rig = rig_manual(1);
	struct puppet owner = puppet_of(&rig, ADVANCE);

	(void)arm_at(rig.queue, 128, 'X');
	owner.deed.at_ns = 128;
	puppet_start(&owner, TEST_POINT_OWNER_BEFORE_INBOX);
	expect_eq(timerhub_advance(rig.hub, 256, NULL), -EBUSY);
	puppet_finish(&owner);
	expect_eq(timerhub_now(rig.hub), 128);
	expect_event(&rig, 'X');
	rig_close(&rig);
}
END_TEST

static void add_consumer_tests(void)
{
	tests_add(law_9_expiry_before_the_clear_is_found, 60);
	tests_add(law_9_expiry_after_the_clear_is_found_and_the_fd_is_cleared_again, 60);
	tests_add(law_9_second_consumer_is_served_while_the_first_is_stopped, 60);
	tests_add(law_9_partial_drain_tells_of_what_came_meanwhile, 60);
	tests_add(cancel_sync_waits_for_a_callback_about_to_begin, 60);
	tests_add(waiter_about_to_block_does_not_miss_an_expiry, 60);
	tests_add(waiter_about_to_block_does_not_miss_an_interrupt, 60);
	tests_add(waiter_about_to_block_does_not_miss_the_closing_which_waits_for_it, 60);
	tests_add(interrupted_waiter_passes_the_wake_on, 60);
	tests_add(stopped_waiter_does_not_take_the_wake_of_another, 60);
}

int main(int argc, char **argv)
{
	puppets_begin("traps of delivery", argc, argv);
	add_consumer_tests();
	tests_add(law_3_cancel_wins_over_a_stopped_delivery, 60);
	tests_add(law_4_rearm_wins_over_a_stopped_delivery, 60);
	tests_add(law_2_expiry_renewed_under_a_stopped_delivery_comes_once, 60);
	tests_add(periodic_delivery_survives_being_overdue_under_its_hands, 60);
	tests_add(periodic_cancelled_under_a_stopped_delivery_is_gone, 60);
	tests_add(law_4_periodic_rearmed_under_a_stopped_delivery_has_a_new_phase, 60);
	tests_add(law_7_two_consumers_of_one_expiry_keep_the_phase, 60);
	tests_add(periodic_delivered_under_a_stopped_rearm_counts_right, 60);
	tests_add(periods_keep_their_phase_when_looked_at_under_a_stopped_delivery, 60);
	tests_add(law_7_periods_are_not_counted_from_a_deadline_that_is_not_due, 60);
	tests_add(law_7_periodic_rearmed_to_its_next_period_has_a_new_phase, 60);
	tests_add(law_4_owner_expires_what_it_has_read_or_nothing, 60);
	tests_add(law_3_cancel_before_the_owner_publishes, 60);
	tests_add(law_4_rearm_before_the_owner_publishes, 60);
	tests_add(second_thread_is_not_let_into_advance, 60);
	return tests_run();
}
