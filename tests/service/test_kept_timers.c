/* SPDX-License-Identifier: MIT */
/*
 * Tests kept timers (TIMERHUB_KEEP). The handle and the slot of a kept timer outlive its expiry. If
 * a kept timer was idle, its re-arm returns 1. If the timer was armed, or its expiry was
 * undelivered, the re-arm returns 0.
 */
#include "rig.h"

static timerhub_timer arm_kept(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data)
{
	return arm(queue, SPEC(.flags = TIMERHUB_KEEP | TIMERHUB_ABSOLUTE, .expires_ns = expires_ns,
	                       .data = data));
}

/*
 * Takes the only event of the queue, which must be of this timer and this deadline. After the
 * delivery the timer must be idle.
 */
static void expect_comes(struct rig *rig, timerhub_timer timer, uint64_t due_ns)
{
	struct timerhub_event events[2];
	uint64_t left_ns = 0;

	expect_eq(timerhub_drain(rig->queue, events, 2), 1);
	expect_eq(events[0].timer, timer);
	expect_eq(events[0].expires_ns, due_ns);
	expect_eq(events[0].count, 1);
	expect(events[0].queue == rig->queue);
	expect_eq(timerhub_remaining(rig->hub, timer, &left_ns), 0);
	expect_eq(left_ns, UINT64_MAX);
}

static int move(struct rig *rig, timerhub_timer timer, uint64_t at_ns)
{
	return timerhub_rearm(rig->hub, timer, at_ns, TIMERHUB_ABSOLUTE);
}

START_TEST(keep_the_handle_outlives_the_expiry)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer = arm_kept(rig.queue, 100, 7);

	advance(rig.hub, 99);
	expect_empty(rig.queue);
	advance(rig.hub, 128);
	expect_comes(&rig, timer, 100);
	for (uint64_t at_ns = 6400; at_ns < 640000; at_ns += 6400) {
		expect_eq(move(&rig, timer, at_ns), 1);
		advance(rig.hub, at_ns - 1);
		expect_empty(rig.queue);
		advance(rig.hub, at_ns);
		expect_comes(&rig, timer, at_ns);
	}
	expect_eq(stats_of(rig.hub).live, 1);
	expect_eq(stats_of(rig.hub).armed, 1);
	expect_eq(stats_of(rig.hub).delivered, 100);
	expect_eq(stats_of(rig.hub).cancelled, 0);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	expect_eq(timerhub_cancel(rig.hub, timer), -ENOENT);
	expect_eq(move(&rig, timer, 1), -ENOENT);
	expect_eq(stats_of(rig.hub).live, 0);
	expect_eq(stats_of(rig.hub).cancelled, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(keep_a_rearm_says_whether_the_timer_idled)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer = arm_kept(rig.queue, 640, 7);

	expect_eq(move(&rig, timer, 1280), 0); /* moves the deadline later */
	expect_eq(move(&rig, timer, 320), 0);  /* moves the deadline earlier */
	/* a timer that is armed for NEVER is not idle */
	expect_eq(move(&rig, timer, TIMERHUB_NEVER), 0);
	expect_eq(move(&rig, timer, 640), 0);
	advance(rig.hub, 640);
	expect_eq(move(&rig, timer, 1280), 0); /* withdraws the undelivered expiry of the timer */
	expect_empty(rig.queue);
	advance(rig.hub, 1280);
	expect_comes(&rig, timer, 1280);
	expect_eq(move(&rig, timer, TIMERHUB_NEVER), 1);
	expect_eq(move(&rig, timer, TIMERHUB_NEVER), 0);
	expect_eq(move(&rig, timer, 64), 0); /* the new deadline has already passed */
	advance(rig.hub, 1281);
	expect_comes(&rig, timer, 64);
	expect_eq(timerhub_rearm(rig.hub, timer, 1000, 0), 1);
	expect_eq(timerhub_rearm(rig.hub, timer, 2000, 0), 0);
	expect_eq(timerhub_rearm_many(rig.hub, &timer, 1, 3000, 0), 1);
	rig_close(&rig);
}
END_TEST

/*
 * Each deadline of the test differs from the first deadline in one bit. The hub must store each
 * deadline exactly.
 */
START_TEST(keep_deadlines_are_those_asked_for)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer = arm_kept(rig.queue, 99, 0);

	advance(rig.hub, 128);
	expect_comes(&rig, timer, 99);
	for (unsigned shift = 12; shift < 40; shift++) {
		uint64_t at_ns = (UINT64_C(1) << shift) + 129;

		expect_eq(move(&rig, timer, at_ns), 1);
		advance(rig.hub, at_ns - 1);
		expect_empty(rig.queue);
		advance(rig.hub, at_ns);
		expect_comes(&rig, timer, at_ns);
	}
	rig_close(&rig);
}
END_TEST

/*
 * If an expiry is withdrawn, its handle stays in the outbox. After the timer's next expiry, the
 * outbox has two equal handles. They must give only one event.
 */
START_TEST(keep_a_withdrawn_expiry_is_not_delivered_too)
{
	struct rig rig = rig_manual(2);
	timerhub_timer timer = arm_kept(rig.queue, 64, 7);
	uint64_t now_ns = 64;

	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i <= round; i++) {
			advance(rig.hub, now_ns);
			now_ns += 64;
			expect_eq(move(&rig, timer, now_ns), 0);
		}
		advance(rig.hub, now_ns);
		expect_comes(&rig, timer, now_ns);
		expect_empty(rig.queue);
		now_ns += 64;
		expect_eq(move(&rig, timer, now_ns), 1);
	}
	expect_eq(stats_of(rig.hub).delivered, 50);
	rig_close(&rig);
}
END_TEST

START_TEST(keep_an_idle_timer_holds_its_place)
{
	struct rig rig = rig_manual(1);
	timerhub_timer timer = arm_kept(rig.queue, 64, 7);
	timerhub_timer other;

	advance(rig.hub, 64);
	expect_comes(&rig, timer, 64);
	expect_eq(timerhub_after(rig.queue, 1, 0, &other), -EAGAIN);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	other = arm_after(rig.queue, 1, 0);
	expect_eq(timerhub_cancel(rig.hub, timer), -ENOENT);
	expect_eq(move(&rig, timer, 1), -ENOENT);
	expect_eq(timerhub_cancel(rig.hub, other), 0);
	rig_close(&rig);
}
END_TEST

/* The handle of an earlier timer of the slot must be stale, for kept timers and for others. */
START_TEST(keep_handles_of_former_lives_are_stale)
{
	struct rig rig = rig_manual(1);
	struct dice dice = dice_new(1);
	timerhub_timer before[64] = { 0 };
	uint64_t now_ns = 0;

	for (unsigned i = 0; i < 4000; i++) {
		bool kept = dice_below(&dice, 2) == 0;
		struct timerhub_event event;
		timerhub_timer timer = kept ? arm_kept(rig.queue, now_ns + 64, i)
		                            : arm_at(rig.queue, now_ns + 64, i);

		for (unsigned j = 0; j < COUNT_OF(before); j++) {
			expect(before[j] != timer);
			expect_eq(timerhub_cancel(rig.hub, before[j]), -ENOENT);
			expect_eq(move(&rig, before[j], now_ns), -ENOENT);
		}
		before[i % COUNT_OF(before)] = timer;
		if (dice_below(&dice, 2) == 0) {
			now_ns += 64;
			advance(rig.hub, now_ns);
			expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
			expect_eq(event.data, i);
			expect_eq(timerhub_cancel(rig.hub, timer), kept ? 0 : -ENOENT);
		} else {
			expect_eq(timerhub_cancel(rig.hub, timer), 0);
		}
	}
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(keep_a_closing_queue_drops_idle_timers)
{
	struct rig rig = rig_manual(8);
	struct timerhub_queue *other = queue_open(rig.hub);
	timerhub_timer timer = arm_kept(rig.queue, 64, 7);
	timerhub_timer others[3];

	for (unsigned i = 0; i < 3; i++)
		others[i] = arm_kept(other, 64, i);
	advance(rig.hub, 64);
	expect_comes(&rig, timer, 64);
	expect_eq(drain_all(other), 3);
	timerhub_queue_close(other);
	for (unsigned i = 0; i < 3; i++)
		expect_eq(move(&rig, others[i], 128), -ENOENT);
	expect_eq(move(&rig, timer, 128), 1);
	expect_eq(stats_of(rig.hub).live, 1);
	expect_eq(stats_of(rig.hub).cancelled, 0);
	rig_close(&rig);
}
END_TEST

/*
 * For a heartbeat or a retry, one call of timerhub_rearm() is enough, in the timer's own callback
 * or elsewhere.
 */
static struct rig beating;
static unsigned beats;

static void beat(const struct timerhub_event *event)
{
	beats++;
	expect_eq(timerhub_rearm(timerhub_queue_hub(event->queue), event->timer, 64, 0), 1);
}

START_TEST(keep_a_callback_arms_its_own_timer_again)
{
	uint64_t now_ns = 0;

	beating = rig_manual(1);
	arm(beating.queue, SPEC(.flags = TIMERHUB_KEEP, .expires_ns = 64, .fn = beat));
	for (unsigned i = 0; i < 1000; i++) {
		now_ns += 64;
		advance(beating.hub, now_ns);
		expect_eq(timerhub_dispatch(beating.queue, 8), 1);
	}
	expect_eq(beats, 1000);
	expect_eq(stats_of(beating.hub).armed, 1);
	rig_close(&beating);
}
END_TEST

START_TEST(keep_with_slack_and_by_arm_many)
{
	struct rig rig = rig_manual(8);
	struct timerhub_spec specs[3] = {
		SPEC(.flags = TIMERHUB_KEEP, .expires_ns = 100, .slack_ns = 1000, .data = 1),
		SPEC(.expires_ns = 200, .data = 2),
		SPEC(.flags = TIMERHUB_KEEP, .expires_ns = TIMERHUB_NEVER, .data = 3),
	};
	timerhub_timer timers[3];
	struct timerhub_event events[3];

	expect_eq(timerhub_arm_many(rig.queue, specs, 3, timers), 3);
	advance(rig.hub, 1100);
	expect_eq(timerhub_drain(rig.queue, events, 3), 2);
	expect_eq(timerhub_rearm_many(rig.hub, timers, 3, 1000, 0), 2);
	expect_eq(timerhub_cancel_many(rig.hub, timers, 3), 2);
	specs[1].flags = TIMERHUB_KEEP;
	specs[1].interval_ns = 5;
	expect_eq(timerhub_arm_many(rig.queue, specs, 3, timers), -EINVAL);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

/*
 * On a hub with an owner thread, a kept timer goes through many rounds of expiry, delivery and
 * re-arm.
 */
START_TEST(keep_beats_on_a_real_clock)
{
	struct rig rig = rig_open(8);
	timerhub_timer timer =
		arm(rig.queue, SPEC(.flags = TIMERHUB_KEEP, .expires_ns = 1, .data = 5));

	for (unsigned i = 0; i < scaled(300); i++) {
		struct timerhub_event event = take_one(rig.queue);

		expect_eq(event.timer, timer);
		expect_cmp(monotonic_ns(), >=, event.expires_ns);
		expect_eq(timerhub_rearm(rig.hub, timer, i % 2 == 0 ? HOUR : 50 * US, 0), 1);
		if (i % 2 == 0)
			expect_eq(timerhub_rearm(rig.hub, timer, 20 * US, 0), 0);
	}
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("kept_timers", argc, argv);
	tests_add(keep_the_handle_outlives_the_expiry, 30);
	tests_add(keep_a_rearm_says_whether_the_timer_idled, 30);
	tests_add(keep_deadlines_are_those_asked_for, 30);
	tests_add(keep_a_withdrawn_expiry_is_not_delivered_too, 30);
	tests_add(keep_an_idle_timer_holds_its_place, 30);
	tests_add(keep_handles_of_former_lives_are_stale, 30);
	tests_add(keep_a_closing_queue_drops_idle_timers, 30);
	tests_add(keep_a_callback_arms_its_own_timer_again, 30);
	tests_add(keep_with_slack_and_by_arm_many, 30);
	tests_add(keep_beats_on_a_real_clock, 60);
	return tests_run();
}
