/* SPDX-License-Identifier: MIT */
/*
 * Law 7: a periodic timer has at most one undelivered event, which counts the periods until its
 * delivery, in the phase of the first deadline; undrained periods cost the owner nothing.
 */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Periods 0 to `told` - 1 were reported, each once. */
struct account {
	uint64_t first_ns;
	uint64_t interval_ns;
	uint64_t told;
};

static void account_add(struct account *account, const struct timerhub_event *event)
{
	expect_eq(event->expires_ns, account->first_ns + account->told * account->interval_ns);
	expect_cmp(event->count, >, 0);
	account->told += event->count;
}

static uint64_t account_due(const struct account *account, uint64_t now_ns)
{
	return now_ns < account->first_ns ? 0
	                                  : (now_ns - account->first_ns) / account->interval_ns + 1;
}

static void arm_account(struct rig *rig, const struct account *account)
{
	arm(rig->queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = account->first_ns,
	                     .interval_ns = account->interval_ns));
}

/* None before it is due. */
static void collect(struct rig *rig, struct account *account, uint64_t periods)
{
	while (account->told < periods) {
		struct timerhub_event event = take_one(rig->queue);

		account_add(account, &event);
		expect_cmp(account->told, <=, account_due(account, monotonic_ns()));
	}
}

TEST(periods_are_counted_after_stop_and_continue, 60)
{
	pid_t child = fork();

	if (child == 0) {
		struct rig rig = rig_open(4);
		struct account account = { monotonic_ns() + MS, 700001, 0 };

		arm_account(&rig, &account);
		collect(&rig, &account, 400);
		rig_close(&rig);
		_exit(EXIT_SUCCESS);
	}
	for (unsigned i = 0; i < 5; i++) {
		sleep_ns(20 * MS);
		kill(child, SIGSTOP);
		sleep_ns(30 * MS);
		kill(child, SIGCONT);
	}
	child_ends_well(child);
}

#define UNDRAINED 100000

/* A hundred thousand undrained timers in one queue; another's events stay punctual. */
TEST(periods_that_nobody_drains_cost_nothing, 60)
{
	struct rig rig = rig_open(UNDRAINED + 10);
	struct timerhub_queue *punctual = queue_open(rig.hub);
	struct dice dice = dice_new(0);
	uint64_t deadline_ns = monotonic_ns() + ARRIVES;
	struct timerhub_stats before;
	uint64_t rss_bytes;

	for (unsigned i = 0; i < UNDRAINED; i++)
		arm(rig.queue, SPEC(.expires_ns = dice_below(&dice, 20 * MS), .data = i,
		                    .interval_ns = MS + dice_below(&dice, 20 * MS)));
	for (unsigned i = 0; i < 100; i++) {
		arm_after(punctual, dice_below(&dice, 2 * MS), i);
		expect_eq(take_one(punctual).data, i);
	}
	while (stats_of(rig.hub).expired < UNDRAINED + 100) {
		expect(monotonic_ns() < deadline_ns);
		sleep_ns(MS);
	}
	before = stats_settled(rig.hub);
	rss_bytes = process_rss_bytes();
	sleep_ns(100 * MS);
	expect_eq(stats_of(rig.hub).owner_wakeups, before.owner_wakeups);
	expect_eq(stats_of(rig.hub).expired, before.expired);
	process_rss_is_still(rss_bytes);
	expect_eq(stats_of(rig.hub).live, UNDRAINED);
	rig_close(&rig);
}

/* Advanced only to announced times; without a timer there is none. */
TEST(periods_until_the_end_of_time, 20)
{
	struct rig rig = rig_manual(4);
	struct timerhub_event event;

	arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .interval_ns = 1));
	for (unsigned i = 0; i < 2; i++)
		expect(advance(rig.hub, UINT64_MAX) == UINT64_MAX);
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	expect_eq(event.expires_ns, 0);
	/* from time 0 to the largest deadline */
	expect(event.count == UINT64_MAX);
	expect_empty(rig.queue);
	arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = 7, .data = 7));
	arm(rig.queue, SPEC(.expires_ns = UINT64_MAX));
	expect_eq(timerhub_after(rig.queue, 0, 0, NULL), -ERANGE);
	expect(advance(rig.hub, UINT64_MAX) == UINT64_MAX);
	expect_eq(take_one(rig.queue).data, 7);
	rig_close(&rig);
}
