/* SPDX-License-Identifier: MIT */
/*
 * Law 13: an event is told in time although many far timers are armed before it. The test counts
 * the owner's wake-ups, and only prints lateness: a machine may stall. tests/unit/test_owner.c
 * counts the owner's work before a signal, beside storms and many queues.
 */
#include "rig.h"

#include <stdio.h>

/*
 * INBOX_MANY has the same value as in lib/owner/inbox.c. If more than INBOX_MANY entries wait in
 * the inbox, a caller wakes the owner.
 */
#define INBOX_MANY 8192

/* A thread that waits for one event and then reads the clock. */
struct waiter {
	struct timerhub_queue *queue;
	pthread_t thread;
	uint64_t late_ns;
};

static void *waiter_main(void *arg)
{
	struct waiter *waiter = arg;
	struct timerhub_event event;

	expect_eq(timerhub_wait(waiter->queue, &event, 1, 6 * ARRIVES), 1);
	waiter->late_ns = monotonic_ns() - event.expires_ns;
	return NULL;
}

static void waiter_start(struct waiter *waiter, struct timerhub *hub)
{
	waiter->queue = queue_open(hub);
	thread_start(&waiter->thread, waiter_main, waiter);
}

/* Returns the lateness of the event in milliseconds. */
static double waiter_finish(struct waiter *waiter)
{
	thread_join(waiter->thread);
	return (double)waiter->late_ns / (double)MS;
}

/*
 * Many far timers are armed while the owner sleeps until a deadline. Whenever some thousands of the
 * far timers wait in the inbox, a caller wakes the owner, and the owner schedules them. At the
 * deadline, the owner has therefore already scheduled most of the far timers.
 */
static void far_timers_meanwhile(unsigned count)
{
	struct rig rig = rig_open(count + 1);
	struct timerhub_stats before, after;
	uint64_t at_ns = monotonic_ns() + SEC + (uint64_t)count * (sanitized() ? 8 : 1) * US;
	struct waiter waiter;
	double told_ms;

	waiter_start(&waiter, rig.hub);
	arm_at(waiter.queue, at_ns, 0);
	before = stats_settled(rig.hub);
	for (unsigned i = 0; i < count; i++)
		arm_at(rig.queue, at_ns + HOUR + i * US, 0);
	told_ms = waiter_finish(&waiter);
	after = stats_settled(rig.hub);
	printf("%u far timers armed meanwhile: %.3f ms late; %llu wake-ups\n", count, told_ms,
	       (unsigned long long)(after.owner_wakeups - before.owner_wakeups));
	/*
	 * The factor 2 is needed because a caller may wake the owner again before the owner has
	 * taken many entries.
	 */
	expect_cmp(after.owner_wakeups - before.owner_wakeups, <=, 2 + 2 * count / INBOX_MANY);
	rig_close(&rig);
}

START_TEST(fair_beside_far_timers_armed_meanwhile)
{
	far_timers_meanwhile(0);
	far_timers_meanwhile(scaled(100000));
	far_timers_meanwhile(scaled(260000));
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("fair", argc, argv);
	tests_add(fair_beside_far_timers_armed_meanwhile, 60);
	return tests_run();
}
