/* SPDX-License-Identifier: MIT */
/*
 * Law 4: re-arm is final. The tests also cover timerhub_remaining(), because timerhub_remaining()
 * shows the effect of a re-arm.
 */
#include "rig.h"

#include <stdatomic.h>

static void expect_one(const struct rig *rig, uint64_t data, uint64_t expires_ns)
{
	struct timerhub_event event;

	expect_eq(timerhub_drain(rig->queue, &event, 1), 1);
	expect_eq(event.data, data);
	expect_eq(event.expires_ns, expires_ns);
	expect_eq(event.count, 1);
	expect_empty(rig->queue);
}

static uint64_t remaining(const struct rig *rig, timerhub_timer timer)
{
	uint64_t left_ns = 0;

	expect_eq(timerhub_remaining(rig->hub, timer, &left_ns), 0);
	return left_ns;
}

START_TEST(rearm_withdraws_on_a_real_hub)
{
	struct rig rig = rig_open(8);
	int fd = timerhub_queue_fd(rig.queue);

	for (unsigned i = 0; i < 50; i++) {
		timerhub_timer timer = arm_after(rig.queue, 20 * US, i);
		uint64_t rearmed_ns;
		struct timerhub_event event;

		expect(fd_readable_within(fd, ARRIVES));
		rearmed_ns = monotonic_ns();
		expect_eq(timerhub_rearm(rig.hub, timer, 2 * MS, 0), 0);
		event = take_one(rig.queue);
		expect_eq(event.data, i);
		expect_cmp(event.expires_ns, >=, rearmed_ns + 2 * MS);
		expect_cmp(monotonic_ns(), >=, event.expires_ns);
		expect_empty(rig.queue);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(rearm_to_never_and_back)
{
	struct rig rig = rig_manual(8);
	timerhub_timer waiting = arm_after(rig.queue, 6400, 1);
	timerhub_timer expired = arm_after(rig.queue, 640, 2);

	advance(rig.hub, 1000);
	expect_eq(timerhub_rearm(rig.hub, waiting, TIMERHUB_NEVER, 0), 0);
	expect_eq(timerhub_rearm(rig.hub, expired, TIMERHUB_NEVER, TIMERHUB_ABSOLUTE), 0);
	advance(rig.hub, UINT64_C(1) << 50);
	expect_empty(rig.queue);
	expect_eq(stats_of(rig.hub).live, 2);
	expect_eq(timerhub_rearm(rig.hub, expired, 64, 0), 0);
	advance(rig.hub, (UINT64_C(1) << 50) + 64);
	expect_one(&rig, 2, (UINT64_C(1) << 50) + 64);
	expect_eq(timerhub_rearm(rig.hub, waiting, 6400, TIMERHUB_ABSOLUTE), 0);
	advance(rig.hub, (UINT64_C(1) << 50) + 64);
	expect_one(&rig, 1, 6400);
	rig_close(&rig);
}
END_TEST

START_TEST(rearm_keeps_the_slack)
{
	struct rig rig = rig_manual(8);
	timerhub_timer timer = arm(rig.queue, SPEC(.expires_ns = 100, .slack_ns = 1000));

	advance(rig.hub, 50);
	expect_eq(timerhub_rearm(rig.hub, timer, 64000, TIMERHUB_ABSOLUTE), 0);
	advance(rig.hub, 63999);
	expect_empty(rig.queue);
	advance(rig.hub, 65000);
	expect_eq(drain_all(rig.queue), 1);
	rig_close(&rig);
}
END_TEST

/* The owner sleeps until a far deadline. A re-arm to an earlier deadline must wake the owner. */
START_TEST(rearm_earlier_reaches_a_sleeping_owner)
{
	struct rig rig = rig_open(64);

	for (unsigned i = 0; i < 100; i++) {
		timerhub_timer timer = arm_after(rig.queue, HOUR, i);

		if (i % 3 == 0)
			sleep_ns(MS);
		if (i % 3 == 1)
			expect_eq(timerhub_rearm(rig.hub, timer, 2 * HOUR, 0), 0);
		expect_eq(timerhub_rearm(rig.hub, timer, i * US, 0), 0);
		expect_eq(take_one(rig.queue).data, i);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(remaining_is_exact_in_virtual_time)
{
	struct rig rig = rig_manual(8);
	timerhub_timer timer = arm_after(rig.queue, 1001, 1);
	uint64_t left_ns = 4711;

	expect_eq(remaining(&rig, timer), 1001);
	advance(rig.hub, 1000);
	expect_eq(remaining(&rig, timer), 1);
	advance(rig.hub, 1001);
	expect_eq(remaining(&rig, timer), 0);
	advance(rig.hub, 2000);
	expect_eq(remaining(&rig, timer), 0);
	expect_eq(timerhub_rearm(rig.hub, timer, 6400, TIMERHUB_ABSOLUTE), 0);
	expect_eq(remaining(&rig, timer), 4400);
	expect_eq(timerhub_rearm(rig.hub, timer, TIMERHUB_NEVER, 0), 0);
	expect(remaining(&rig, timer) == UINT64_MAX);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), -ENOENT);
	expect_eq(left_ns, 4711);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("rearm", argc, argv);
	tests_add(rearm_withdraws_on_a_real_hub, 60);
	tests_add(rearm_to_never_and_back, 30);
	tests_add(rearm_keeps_the_slack, 30);
	tests_add(rearm_earlier_reaches_a_sleeping_owner, 60);
	tests_add(remaining_is_exact_in_virtual_time, 30);
	return tests_run();
}
