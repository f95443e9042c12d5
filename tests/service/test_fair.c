/* SPDX-License-Identifier: MIT */
/*
 * Law 13: the owner signals an event soon after the events that are due before it. The events of
 * other queues and the number of armed timers make no difference. tests/unit/test_owner.c counts
 * the owner's work before the signal. The tests of this program check that each event comes, and
 * how often the owner wakes. The tests print the lateness of events without a check, since a
 * machine may stall.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

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

/* Returns an upper bound of the largest lateness in the hub's statistics, in milliseconds. */
static double latest_ms(struct timerhub *hub)
{
	struct timerhub_stats stats = stats_settled(hub);
	unsigned last = 0;

	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		if (stats.lateness[i] > 0)
			last = i;
	return (double)(UINT64_C(2) << last) / (double)MS;
}

/*
 * Returns the number of queues that the limit of descriptors allows. Some of the descriptors are
 * left for other uses.
 */
static unsigned queues_allowed(unsigned wanted)
{
	struct rlimit limit;

	expect_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	expect_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit.rlim_cur < wanted + 100 ? (unsigned)limit.rlim_cur - 100 : wanted;
}

/*
 * One queue has a single timer. The argument `queues` is the number of other queues. The argument
 * `each` is the number of timers that every other queue has. The single timer is due a microsecond
 * before all others.
 */
static void one_event_before(unsigned queues, unsigned each)
{
	struct timerhub_queue **others = calloc(queues, sizeof(struct timerhub_queue *));
	struct rig rig = rig_open(queues * each + 1);
	struct waiter waiter;
	uint64_t at_ns;
	double told_ms;

	expect(others);
	for (unsigned i = 0; i < queues; i++)
		others[i] = queue_open(rig.hub);
	waiter_start(&waiter, rig.hub);
	at_ns = monotonic_ns() + SEC + (uint64_t)queues * each * (sanitized() ? 4 : 1) * US;
	arm_at(waiter.queue, at_ns - US, 0);
	for (unsigned i = 0; i < queues; i++)
		for (unsigned j = 0; j < each; j++)
			arm_at(others[i], at_ns, 0);
	told_ms = waiter_finish(&waiter);
	printf("%u queues with %u timers each, an event 1 us before: %.3f ms late; the last told "
	       "within %.1f ms\n",
	       queues, each, told_ms, latest_ms(rig.hub));
	for (unsigned i = 0; i < queues; i++)
		expect_eq(drain_all(others[i]), each);
	rig_close(&rig);
	free(others);
}

START_TEST(fair_beside_a_storm_of_one_queue)
{
	one_event_before(1, scaled(300000));
}
END_TEST

START_TEST(fair_beside_many_queues)
{
	one_event_before(queues_allowed(scaled(15000)), 40);
}
END_TEST

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
	tests_add(fair_beside_a_storm_of_one_queue, 60);
	tests_add(fair_beside_many_queues, 120);
	tests_add(fair_beside_far_timers_armed_meanwhile, 60);
	return tests_run();
}
