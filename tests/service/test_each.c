/* SPDX-License-Identifier: MIT */
/*
 * timerhub_each() shows every live timer once, with the values of its spec. The simulation arms and
 * cancels beside it.
 */
#include "rig.h"

#include <string.h>

#define SHOWN_MAX 16

struct shown {
	struct timerhub_event timers[SHOWN_MAX]; /* events shown. The index is the timer's data. */
	uint64_t intervals_ns[SHOWN_MAX];
	unsigned times[SHOWN_MAX];
	unsigned count;
	unsigned stop_after; /* the call of this number ends the walk; with 0, no call ends it */
};

static int show(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	struct shown *shown = context;

	expect_cmp(timer->data, <, SHOWN_MAX);
	shown->timers[timer->data] = *timer;
	shown->intervals_ns[timer->data] = interval_ns;
	shown->times[timer->data]++;
	return ++shown->count == shown->stop_after ? 42 : 0;
}

/* A loop's own timer: a walk that cancels all must not see it. */
TEST(each_shows_no_timer_of_the_library, 20)
{
	struct rig rig = rig_manual(16);
	struct timerhub_timeout timeout = { 0 };
	struct timerhub_loop *loop;
	struct shown shown = { .count = 0 };
	timerhub_timer timer;

	expect_eq(timerhub_loop_open(&loop, rig.hub, NULL), 0);
	expect_eq(timerhub_timeout_add(loop, &timeout, ignore_timeout), 0);
	expect_eq(timerhub_each(rig.hub, no_timer, NULL), 0); /* idle */
	expect_eq(timerhub_timeout_set(loop, &timeout, 100), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(timerhub_each(rig.hub, no_timer, NULL), 0); /* armed */
	advance(rig.hub, 100);
	expect_eq(timerhub_each(rig.hub, no_timer, NULL), 0); /* expired */
	timer = arm(timerhub_loop_queue(loop), SPEC(.expires_ns = 1000, .data = 1));
	expect_eq(timerhub_each(rig.hub, show, &shown), 0);
	expect_eq(shown.count, 1);
	expect_eq(shown.timers[1].timer, timer);
	expect_eq(timerhub_loop_turn(loop), 1);
	timerhub_loop_close(loop);
	rig_close(&rig);
}

TEST(each_shows_what_a_timer_is, 30)
{
	static const uint64_t never = TIMERHUB_NEVER;
	struct rig rig = rig_manual(16);
	struct shown shown = { .count = 0 };
	const struct {
		struct timerhub_spec spec;
		uint64_t expires_ns; /* as shown after 200 ns, and a dispatch of what KEEP has */
		unsigned count;
	} cases[] = {
		{ SPEC(.expires_ns = 1000), 1000, 0 },
		{ SPEC(.expires_ns = never, .fn = no_callback), never, 0 },
		{ SPEC(.expires_ns = 150), 150, 1 },
		{ SPEC(.expires_ns = 160, .interval_ns = 7000), 160, 1 },
		{ SPEC(.expires_ns = 100, .flags = TIMERHUB_KEEP), never, 0 },
	};

	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		struct timerhub_spec spec = cases[i].spec;

		spec.data = i;
		(void)arm(rig.queue, spec);
	}
	advance(rig.hub, 100);
	expect_eq(drain_all(rig.queue), 1);
	advance(rig.hub, 200);
	expect_eq(timerhub_each(rig.hub, show, &shown), 0);
	expect_eq(shown.count, COUNT_OF(cases));
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		const struct timerhub_event *timer = &shown.timers[i];

		expect_eq(shown.times[i], 1);
		expect_eq(timer->expires_ns, cases[i].expires_ns);
		expect_eq(timer->count, cases[i].count);
		expect(timer->fn == cases[i].spec.fn && timer->queue == rig.queue);
		expect_eq(shown.intervals_ns[i], cases[i].spec.interval_ns);
	}
	rig_close(&rig);
}

TEST(each_ends_when_it_is_told_to, 30)
{
	struct rig rig = rig_manual(16);

	for (unsigned i = 0; i < 10; i++)
		arm_at(rig.queue, 1000 + i, i);
	for (unsigned i = 1; i <= 10; i++) {
		struct shown shown = { .stop_after = i };

		expect_eq(timerhub_each(rig.hub, show, &shown), 42);
		expect_eq(shown.count, i);
	}
	rig_close(&rig);
}
