/* SPDX-License-Identifier: MIT */
/*
 * Law 7: a periodic timer has at most one undelivered event, which counts the periods until its
 * delivery, in the phase of the first deadline; undrained periods cost the owner nothing.
 */
#include "rig.h"

#include <signal.h>
#include <stdatomic.h>
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

static const uint64_t intervals_ns[] = { 1, 63, 64, 100 * US, 1000003, 999999937, HOUR + 1 };

START_TEST(periods_are_phase_locked_for_every_interval)
{
	for (unsigned i = 0; i < COUNT_OF(intervals_ns); i++) {
		struct account account = { 12345, intervals_ns[i], 0 };
		struct rig rig = rig_manual(1);
		uint64_t now_ns = 0;
		uint64_t events = 0;

		arm_account(&rig, &account);
		while (account.told < scaled(10000)) {
			uint64_t next_ns = advance(rig.hub, now_ns);
			struct timerhub_event event;

			while (timerhub_drain(rig.queue, &event, 1) == 1) {
				/* all that are due at one advance */
				expect_cmp(event.count, <=, 1 + 63 / account.interval_ns);
				account_add(&account, &event);
				events++;
			}
			expect_eq(account.told, account_due(&account, now_ns));
			expect_cmp(next_ns, >=, now_ns);
			now_ns = account.first_ns + account.told * account.interval_ns;
		}
		expect_eq(stats_of(rig.hub).overruns, account.told - events);
		rig_close(&rig);
	}
}
END_TEST

/* No drift, even after a re-arm: a third of a second is no binary fraction. */
START_TEST(periods_are_exact_to_the_hundred_thousandth)
{
	const uint64_t interval_ns = 333333334, periods = scaled(100000);
	const uint64_t rearm_at = periods / 9 * 7;
	struct rig rig = rig_manual(1);
	struct timerhub_event event;
	uint64_t first_ns = 1;
	timerhub_timer timer =
		arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = first_ns,
	                            .interval_ns = interval_ns));

	for (uint64_t k = 0; k < periods; k++) {
		if (k == rearm_at) {
			first_ns += k * interval_ns + 12345;
			expect_eq(timerhub_rearm(rig.hub, timer, first_ns, TIMERHUB_ABSOLUTE), 0);
		}
		advance(rig.hub, first_ns + (k >= rearm_at ? k - rearm_at : k) * interval_ns);
		expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
		expect_eq(event.count, 1);
		expect_eq(event.expires_ns, timerhub_now(rig.hub));
	}
	expect_eq(event.expires_ns, 1 + 12345 + (periods - 1) * interval_ns);
	rig_close(&rig);
}
END_TEST

/* None before it is due. */
static void collect(struct rig *rig, struct account *account, uint64_t periods)
{
	while (account->told < periods) {
		struct timerhub_event event = take_one(rig->queue);

		account_add(account, &event);
		expect_cmp(account->told, <=, account_due(account, monotonic_ns()));
	}
}

/* The largest deadline that the hub accepts. */
#define LAST_NS ((UINT64_C(1) << 63) - 128)

/* Beyond the largest deadline none comes, and the timer stays live. */
START_TEST(periods_end_with_the_last_deadline)
{
	struct rig rig = rig_manual(1);
	timerhub_timer timer = arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = 64,
	                                           .interval_ns = LAST_NS - 64));
	struct timerhub_event event;
	uint64_t left_ns = 0;

	advance(rig.hub, 64);
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	expect(event.expires_ns == 64 && event.count == 1);
	expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), 0);
	expect_eq(left_ns, LAST_NS - 64);
	advance(rig.hub, LAST_NS - 1);
	expect_empty(rig.queue);
	advance(rig.hub, LAST_NS);
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	expect(event.expires_ns == LAST_NS && event.count == 1);
	expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), 0);
	expect(left_ns == UINT64_MAX);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(periods_are_counted_after_silence)
{
	struct rig rig = rig_open(4);
	struct account account = { monotonic_ns() + MS, 1000003, 0 };

	arm_account(&rig, &account);
	for (unsigned round = 0; round < 5; round++) {
		uint64_t due;
		struct timerhub_event event;

		sleep_ns(40 * MS);
		due = account_due(&account, monotonic_ns() - 2 * MS);
		event = take_one(rig.queue);
		account_add(&account, &event);
		expect_cmp(event.count, >, 1);
		collect(&rig, &account, due);
	}
	collect(&rig, &account, account.told + 20);
	expect_cmp(stats_of(rig.hub).overruns, >=, 4);
	rig_close(&rig);
}
END_TEST

START_TEST(periods_are_counted_after_stop_and_continue)
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
END_TEST

/* Three consumers and a short interval: each period once. */
#define PERIODS_MAX (1 << 22)

static atomic_uchar period_told[PERIODS_MAX];
static atomic_uint periods_told;

struct shared {
	struct rig rig;
	uint64_t first_ns;
	uint64_t interval_ns;
};

static void *collect_shared(void *arg)
{
	const struct shared *shared = arg;
	struct timerhub_event event;
	int result;

	while ((result = timerhub_wait(shared->rig.queue, &event, 1, UINT64_MAX)) == 1) {
		uint64_t at = (event.expires_ns - shared->first_ns) / shared->interval_ns;

		expect_eq(event.expires_ns, shared->first_ns + at * shared->interval_ns);
		expect_cmp(at + event.count, <=, PERIODS_MAX);
		for (uint64_t i = at; i < at + event.count; i++)
			expect_eq(atomic_fetch_add(&period_told[i], 1), 0);
		atomic_fetch_add(&periods_told, (unsigned)event.count);
	}
	expect_eq(result, -ESHUTDOWN);
	return NULL;
}

START_TEST(periods_add_up_over_many_consumers)
{
	struct shared shared = { rig_open(1), monotonic_ns(), 20 * US + 1 };
	pthread_t threads[3];

	arm(shared.rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = shared.first_ns,
	                           .interval_ns = shared.interval_ns));
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], collect_shared, &shared);
	while (atomic_load(&periods_told) < 5000)
		sleep_ns(MS);
	timerhub_queue_close(shared.rig.queue);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	for (unsigned i = 0; i < atomic_load(&periods_told); i++)
		expect_eq(atomic_load(&period_told[i]), 1);
	expect_cmp(atomic_load(&periods_told), <=,
	           (monotonic_ns() - shared.first_ns) / shared.interval_ns + 1);
	timerhub_close(shared.rig.hub);
}
END_TEST

#define UNDRAINED 100000

/* A hundred thousand undrained timers in one queue; another's events stay punctual. */
START_TEST(periods_that_nobody_drains_cost_nothing)
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
END_TEST

/* One event each, with the exact count. */
START_TEST(periods_that_nobody_drained_are_told_once_each)
{
	struct rig rig = rig_manual(UNDRAINED);
	struct timerhub_event event;
	uint64_t now_ns = 0;
	unsigned taken = 0;

	for (unsigned i = 0; i < UNDRAINED; i++)
		arm(rig.queue, SPEC(.expires_ns = 1 + i, .data = i, .interval_ns = 1000 + i));
	for (unsigned i = 0; i < 50; i++) {
		now_ns += MS;
		advance(rig.hub, now_ns);
	}
	for (; taken < UNDRAINED; taken++) {
		expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
		expect_eq(event.expires_ns, 1 + event.data);
		expect_eq(event.count, (now_ns - 1 - event.data) / (1000 + event.data) + 1);
	}
	expect_empty(rig.queue);
	rig_close(&rig);
}
END_TEST

/* Advanced only to announced times; without a timer there is none. */
START_TEST(periods_until_the_end_of_time)
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
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("periodic", argc, argv);
	tests_add(periods_are_phase_locked_for_every_interval, 60);
	tests_add(periods_are_exact_to_the_hundred_thousandth, 60);
	tests_add(periods_end_with_the_last_deadline, 30);
	tests_add(periods_until_the_end_of_time, 20);
	tests_add(periods_are_counted_after_silence, 60);
	tests_add(periods_are_counted_after_stop_and_continue, 60);
	tests_add(periods_add_up_over_many_consumers, 60);
	tests_add(periods_that_nobody_drains_cost_nothing, 60);
	tests_add(periods_that_nobody_drained_are_told_once_each, 60);
	return tests_run();
}
