/* SPDX-License-Identifier: MIT */
/* The counters of a hub, in virtual time where they are exact. */
#include "rig.h"

/* Each returns the number of events. */
static int take_by_drain(struct timerhub_queue *queue)
{
	struct timerhub_event events[8];

	return timerhub_drain(queue, events, COUNT_OF(events));
}

static int take_by_wait(struct timerhub_queue *queue)
{
	struct timerhub_event events[8];

	return timerhub_wait(queue, events, COUNT_OF(events), 0);
}

static int take_by_dispatch(struct timerhub_queue *queue)
{
	return timerhub_dispatch(queue, 8);
}

static int (*const takes[])(struct timerhub_queue *) = { take_by_drain, take_by_wait,
	                                                 take_by_dispatch };

/* Signalled in time, taken late. */
TEST_LOOP(stats_of_delivery_lateness_are_of_the_taking, 30, COUNT_OF(takes))
{
	for (unsigned bit = 10; bit < 60; bit++) {
		struct rig rig = rig_manual(4);
		struct timerhub_stats stats;

		arm_at(rig.queue, 1024, 0);
		arm_at(rig.queue, 1023, 0);
		advance(rig.hub, 1024);
		advance(rig.hub, 1024 + (UINT64_C(1) << bit));
		expect_eq(takes[_i](rig.queue), 2);
		expect_eq(takes[_i](rig.queue), 0);
		stats = stats_of(rig.hub);
		expect_eq(stats.delivery_lateness[bit], 2);
		expect_eq(stats.lateness[0], 2);
		for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
			expect(i == bit || stats.delivery_lateness[i] == 0);
		rig_close(&rig);
	}
}

static void advance_by_10000(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);

	advance(hub, timerhub_now(hub) + 10000);
}

/* The lateness of a dispatch's events does not include the time that its callbacks take. */
TEST(stats_of_delivery_lateness_see_no_callbacks_of_the_call, 30)
{
	struct rig rig = rig_manual(4);

	expect_eq(timerhub_call(rig.queue, 1000, advance_by_10000, NULL, NULL), 0);
	expect_eq(timerhub_call(rig.queue, 1000, advance_by_10000, NULL, NULL), 0);
	expect_eq(timerhub_call(rig.queue, 2000, advance_by_10000, NULL, NULL), 0);
	advance(rig.hub, 1000);
	expect_eq(timerhub_dispatch(rig.queue, 8), 3);
	expect_eq(stats_of(rig.hub).delivery_lateness[0], 3);
	rig_close(&rig);
}

/* Asks for one timer more than are free: slots are taken one by one, and then all put back. */
static void *refuse_many(void *arg)
{
	static struct timerhub_spec specs[101];
	struct rig *rig = arg;

	for (unsigned i = 0; i < COUNT_OF(specs); i++)
		specs[i] = (struct timerhub_spec){ .size = sizeof(specs[i]), .expires_ns = HOUR };
	for (unsigned i = 0; i < 20000; i++)
		expect_eq(timerhub_arm_many(rig->queue, specs, COUNT_OF(specs), NULL), -EAGAIN);
	return NULL;
}

TEST(stats_of_refused_arms_never_fall_below_zero, 120)
{
	struct rig rig = rig_manual(200);
	struct timerhub_stats stats;
	pthread_t refused;

	for (unsigned i = 0; i < 100; i++)
		arm_after(rig.queue, HOUR, i);
	thread_start(&refused, refuse_many, &rig);
	for (unsigned i = 0; i < 20000; i++) {
		stats = stats_of(rig.hub);
		expect_le(stats.armed, 200);
		expect_le(stats.cancelled, 200);
	}
	thread_join(refused);
	stats = stats_of(rig.hub);
	expect_eq(stats.armed, 100);
	expect_eq(stats.cancelled, 0);
	rig_close(&rig);
}
