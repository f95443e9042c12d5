/* SPDX-License-Identifier: MIT */
/* TIMERHUB_KEEP in the timer's own callback and on a real clock; unit/hub_model does the rest. */
#include "rig.h"

/* A heartbeat or a retry is one timerhub_rearm(), in its callback or elsewhere. */
static struct rig beating;
static unsigned beats;

static void beat(const struct timerhub_event *event)
{
	beats++;
	expect_eq(timerhub_rearm(timerhub_queue_hub(event->queue), event->timer, 64, 0), 1);
}

TEST(keep_a_callback_arms_its_own_timer_again, 30)
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

TEST(keep_beats_on_a_real_clock, 60)
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
