/* SPDX-License-Identifier: MIT */
/* Law 4: re-arm is final, on a hub with an owner thread. */
#include "rig.h"

TEST(rearm_withdraws_on_a_real_hub, 60)
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

TEST(rearm_earlier_reaches_a_sleeping_owner, 60)
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

/* It would spin for half an hour: an earlier arm or re-arm ends that. */
TEST(rearm_earlier_reaches_a_spinning_owner, 60)
{
	struct rig rig =
		rig_open_config((struct timerhub_config){ .timers_max = 64, .spin_ns = HOUR });

	for (unsigned i = 0; i < 20; i++) {
		timerhub_timer timer = arm_after(rig.queue, HOUR / 2, i);

		if (i % 4 < 2)
			sleep_ns(MS); /* gives the owner time to begin its spin */
		if (i % 2 == 0)
			expect_eq(timerhub_rearm(rig.hub, timer, i * US, 0), 0);
		else
			arm_after(rig.queue, i * US, i);
		expect_eq(take_one(rig.queue).data, i);
	}
	rig_close(&rig);
}
