/* SPDX-License-Identifier: MIT */
/*
 * The wall clock of a hub is set forward and back while the owner sleeps or works. The program has
 * a wall clock of its own (wall_clock.h), so the clock of the machine stays unchanged.
 */
#include "stopped_thread.h"

#include <stdio.h>
#include <string.h>

#include "wall_clock.h"

/* Time by which the program's wall clock is ahead of the kernel's wall clock, modulo 2^64. */
static uint64_t ahead_ns;

static void clock_jump(int64_t ns)
{
	ahead_ns += (uint64_t)ns;
	wall_clock_set(ahead_ns);
}

static struct rig rig_realtime(void)
{
	return rig_open_config(
		(struct timerhub_config){ .timers_max = 4096, .clock = TIMERHUB_CLOCK_REALTIME });
}

static uint64_t now_of(const struct rig *rig)
{
	return timerhub_now(rig->hub);
}

static uint64_t remaining(const struct rig *rig, timerhub_timer timer)
{
	uint64_t left_ns = 0;

	expect_eq(timerhub_remaining(rig->hub, timer, &left_ns), 0);
	return left_ns;
}

/* Waits until the owner has put `count` expiries into queues, has signalled them, and sleeps. */
static void wait_expired(const struct rig *rig, uint64_t count)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (stats_of(rig->hub).expired < count) {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(100 * US);
	}
	owner_settles(rig->hub);
}

/* Waits until the owner has noticed `count` changes of the clock. */
static void wait_jumps(const struct rig *rig, uint64_t count)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (stats_of(rig->hub).clock_jumps < count) {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(100 * US);
	}
}

TEST(forward_delivers_what_is_due_at_once_and_in_order, 60)
{
	struct rig rig = rig_realtime();
	uint64_t now_ns = now_of(&rig);

	for (unsigned i = 0; i < 10; i++)
		(void)arm_at(rig.queue, now_ns + HOUR + (i * 7 % 10) * SEC, i * 7 % 10);
	(void)arm_at(rig.queue, now_ns + 3 * HOUR, 99);
	owner_settles(rig.hub);
	clock_jump((int64_t)(2 * HOUR));
	for (unsigned i = 0; i < 10; i++) {
		struct timerhub_event event = expect_event(&rig, i);

		expect_eq(event.expires_ns, now_ns + HOUR + i * SEC);
		expect_le(event.expires_ns, now_of(&rig));
	}
	expect_nothing(&rig);
	wait_jumps(&rig, 1);
	owner_settles(rig.hub);
	expect_eq(stats_of(rig.hub).clock_jumps, 1);
	rig_close(&rig);
}

TEST(back_makes_timers_wait, 60)
{
	struct rig rig = rig_realtime();
	uint64_t at_ns = now_of(&rig) + 300 * MS;
	timerhub_timer timer = arm_at(rig.queue, at_ns, 'X');

	owner_settles(rig.hub);
	clock_jump(-(int64_t)HOUR);
	wait_jumps(&rig, 1);
	sleep_ns(400 * MS);
	expect_nothing(&rig);
	expect_lt(HOUR / 2, remaining(&rig, timer));
	clock_jump((int64_t)HOUR);
	expect_eq(expect_event(&rig, 'X').expires_ns, at_ns);
	wait_jumps(&rig, 2);
	rig_close(&rig);
}

/*
 * The clock is set back, and then a timer is armed. Its deadline is before the owner's promise and
 * before all older deadlines.
 */
static bool check_armed_after_back(uint64_t margin_ns)
{
	struct rig rig = rig_realtime();
	uint64_t now_ns = now_of(&rig);
	bool in_time;

	(void)arm_at(rig.queue, now_ns + HOUR, 'Z');
	(void)arm_at(rig.queue, now_ns + 1, 'A');
	expect_event(&rig, 'A');
	owner_settles(rig.hub);
	clock_jump(-2 * (int64_t)HOUR);
	wait_jumps(&rig, 1);
	now_ns = now_of(&rig);
	(void)arm_at(rig.queue, now_ns + 3 * margin_ns, 'D');
	(void)arm_at(rig.queue, now_ns + margin_ns, 'B');
	(void)arm_at(rig.queue, now_ns + 2 * margin_ns, 'C');
	/* if the timers were armed too late, they may come in another order */
	in_time = now_of(&rig) < now_ns + margin_ns;
	for (uint64_t data = 'B'; in_time && data <= 'D'; data++)
		expect_le(expect_event(&rig, data).expires_ns, now_of(&rig));
	clock_jump(3 * (int64_t)HOUR);
	wait_jumps(&rig, 2);
	if (in_time)
		expect_event(&rig, 'Z');
	rig_close(&rig);
	return in_time;
}

TEST(back_leaves_new_timers_in_time_and_in_order, 60)
{
	until_in_time(check_armed_after_back, MARGIN);
}

/*
 * The clock was set back, so a consumer changes the phase of an expired timer to ARMED. Another
 * consumer is about to deliver the timer whose phase changes. The timer's periods must follow
 * moved_ns, the deadline of the last re-arm.
 */
TEST(put_back_beside_a_delivery_keeps_its_phase, 60)
{
	struct rig rig = rig_realtime();
	uint64_t first_ns = now_of(&rig) + 1;
	uint64_t moved_ns = first_ns + 127, interval_ns = 100 * HOUR + 1;
	timerhub_timer timer = arm_periodic(&rig, first_ns, interval_ns, 'P');
	struct stopped_thread drainer = { .deed = { .what = DRAIN, .queue = rig.queue, .max = 1 } };

	wait_expired(&rig, 1);
	/* The drainer has taken the first handle, so the owner cannot blank it. */
	stopped_thread_start(&drainer, TEST_POINT_PAIR_HALF_READ);
	expect_eq(timerhub_rearm(rig.hub, timer, moved_ns, TIMERHUB_ABSOLUTE), 0);
	wait_expired(&rig, 2);
	stopped_thread_go_on_if_it_comes(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	expect(!atomic_load(&drainer.over));
	clock_jump(-(int64_t)HOUR);
	expect_nothing(&rig);
	clock_jump((int64_t)HOUR);
	expect_eq(expect_event(&rig, 'P').expires_ns, moved_ns);
	stopped_thread_finish(&drainer);
	expect_eq(drainer.deed.result, 0);
	clock_jump((int64_t)(100 * HOUR));
	expect_eq(expect_event(&rig, 'P').expires_ns, moved_ns + interval_ns);
	rig_close(&rig);
}

/* ---- the owner at work ---- */

TEST(set_while_the_owner_works_is_noticed, 60)
{
	static const enum test_point points[] = { TEST_POINT_OWNER_BEFORE_INBOX,
		                                  TEST_POINT_OWNER_BEFORE_PROMISE };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		struct rig rig = rig_realtime();

		(void)arm_at(rig.queue, now_of(&rig) + HOUR, 'X');
		owner_settles(rig.hub);
		owner_stop_at(points[i], 1);
		(void)arm_at(rig.queue, now_of(&rig), 'W');
		owner_wait_stopped();
		clock_jump(2 * (int64_t)HOUR);
		owner_release();
		expect_event(&rig, 'W');
		expect_event(&rig, 'X');
		rig_close(&rig);
	}
}

TEST(set_while_nothing_is_armed_is_counted, 60)
{
	struct rig rig = rig_realtime();

	for (unsigned i = 1; i <= 5; i++) {
		clock_jump(i % 2 ? (int64_t)HOUR : -(int64_t)HOUR);
		wait_jumps(&rig, i);
		owner_settles(rig.hub);
		expect_eq(stats_of(rig.hub).clock_jumps, i);
	}
	rig_close(&rig);
}

/* ---- at random, against a table ---- */

#define TIMERS 64

struct model_timer {
	timerhub_timer timer; /* handle of the timer, or 0 without a live timer */
	uint64_t at_ns;
};

static struct model_timer model[TIMERS];

static void model_take(struct rig *rig)
{
	struct timerhub_event events[8];
	int count;

	while ((count = timerhub_drain(rig->queue, events, COUNT_OF(events))) > 0) {
		uint64_t now_ns = now_of(rig);

		for (int i = 0; i < count; i++) {
			struct model_timer *timer = &model[events[i].data];

			expect_eq(timer->timer, events[i].timer);
			expect_eq(events[i].expires_ns, timer->at_ns);
			/* the clock was not set between the expiry and this check */
			expect_le(events[i].expires_ns, now_ns);
			timer->timer = 0;
		}
	}
	expect_eq(count, 0);
}

static void model_touch(struct rig *rig, struct dice *dice, unsigned index)
{
	struct model_timer *timer = &model[index];
	uint64_t at_ns = now_of(rig) + dice_magnitude(dice, 43);

	if (dice_one_in(dice, 8))
		at_ns -= dice_magnitude(dice, 40);
	if (timer->timer == 0) {
		timer->timer = arm_at(rig->queue, at_ns, index);
		timer->at_ns = at_ns;
	} else if (dice_one_in(dice, 2)) {
		expect_eq(timerhub_rearm(rig->hub, timer->timer, at_ns, TIMERHUB_ABSOLUTE), 0);
		timer->at_ns = at_ns;
	} else {
		expect_eq(timerhub_cancel(rig->hub, timer->timer), 0);
		timer->timer = 0;
	}
}

/* Expects the events of all timers that are due by the present clock, and of no other timers. */
static void model_settle(struct rig *rig)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	uint64_t now_ns = now_of(rig);

	for (unsigned i = 0; i < TIMERS; i++)
		while (model[i].timer != 0 && model[i].at_ns <= now_ns) {
			expect_lt(monotonic_ns(), until_ns);
			sleep_ns(20 * US);
			model_take(rig);
		}
}

TEST(set_at_random_loses_nothing_and_is_never_early, 240)
{
	struct rig rig = rig_realtime();
	struct dice dice = dice_new(1);
	unsigned steps = scaled(4000);

	memset(model, 0, sizeof(model));
	for (unsigned step = 0; step < steps; step++) {
		expect_context("step", step, 0);
		for (unsigned i = 0; i < 4; i++)
			model_touch(&rig, &dice, (unsigned)dice_below(&dice, TIMERS));
		if (dice_one_in(&dice, 4)) {
			int64_t jump_ns = (int64_t)dice_magnitude(&dice, 43);

			clock_jump(dice_one_in(&dice, 2) ? jump_ns : -jump_ns);
		}
		if (dice_one_in(&dice, 2))
			model_take(&rig);
		if (dice_one_in(&dice, 16))
			model_settle(&rig);
	}
	clock_jump((int64_t)1 << 44);
	clock_jump((int64_t)1 << 44);
	model_settle(&rig);
	for (unsigned i = 0; i < TIMERS; i++)
		expect_eq(model[i].timer, 0);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
