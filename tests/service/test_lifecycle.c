/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes; how a wait ends; many queues. A closed hub leaves no thread, descriptor or
 * memory.
 */
#include "rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define WAITERS 12

/* A thread that calls timerhub_wait() once. */
struct waiter {
	pthread_t thread;
	struct timerhub_queue *queue;
	struct timerhub_event event;
	int result;
	atomic_int tid; /* id of the thread. 0 until the thread is about to wait. */
	atomic_bool done;
};

static void *wait_once(void *arg)
{
	struct waiter *me = arg;

	atomic_store(&me->tid, gettid());
	me->result = timerhub_wait(me->queue, &me->event, 1, UINT64_MAX);
	atomic_store(&me->done, true);
	return NULL;
}

static void waiters_start(struct waiter *waiters, struct timerhub_queue *queue)
{
	for (unsigned i = 0; i < WAITERS; i++) {
		memset(&waiters[i], 0, sizeof(waiters[i]));
		waiters[i].queue = queue;
		thread_start(&waiters[i].thread, wait_once, &waiters[i]);
	}
}

static void waiters_block(const struct waiter *waiters)
{
	for (unsigned i = 0; i < WAITERS; i++)
		thread_begins_and_blocks(&waiters[i].tid);
}

static void expect_waiters_told(struct waiter *waiters, int result)
{
	for (unsigned i = 0; i < WAITERS; i++) {
		thread_join(waiters[i].thread);
		expect_eq(waiters[i].result, result);
	}
}

TEST(wait_times_out_and_not_before, 30)
{
	static const uint64_t timeouts_ns[] = { 0, 1, US, 100 * US, 5 * MS, 20 * MS };

	for (unsigned manual = 0; manual < 2; manual++) {
		struct rig rig = manual ? rig_manual(8) : rig_open(8);

		arm_after(rig.queue, HOUR, 0);
		for (unsigned i = 0; i < COUNT_OF(timeouts_ns); i++) {
			uint64_t start_ns = monotonic_ns();
			struct timerhub_event event;

			expect_eq(timerhub_wait(rig.queue, &event, 1, timeouts_ns[i]), 0);
			expect_cmp(monotonic_ns() - start_ns, >=, timeouts_ns[i]);
		}
		rig_close(&rig);
	}
}

static void ignore_signal(int signal)
{
	(void)signal;
}

TEST(wait_is_not_cut_short_by_signals, 30)
{
	struct sigaction action = { .sa_handler = ignore_signal };
	struct itimerval storm = { .it_interval = { 0, 500 }, .it_value = { 0, 500 } };
	struct rig rig = rig_open(8);
	uint64_t start_ns = monotonic_ns();
	struct timerhub_event event;

	expect_eq(sigaction(SIGALRM, &action, NULL), 0);
	expect_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
	expect_eq(timerhub_wait(rig.queue, &event, 1, 30 * MS), 0);
	expect_cmp(monotonic_ns() - start_ns, >=, 30 * MS);
	arm_after(rig.queue, 10 * MS, 3);
	expect_eq(timerhub_wait(rig.queue, &event, 1, UINT64_MAX), 1);
	storm = (struct itimerval){ 0 };
	expect_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
	rig_close(&rig);
}

/* By the close of the queue (0), or of its hub, with an owner (1) or without one (2). */
TEST_LOOP(wait_is_shut_down_by_a_close, 60, 3)
{
	struct rig rig = _i == 2 ? rig_manual(8) : rig_open(8);
	struct timerhub_queue *other = queue_open(rig.hub);
	struct waiter waiters[WAITERS], others[WAITERS];

	waiters_start(waiters, rig.queue);
	waiters_block(waiters);
	if (_i == 0) {
		timerhub_queue_close(rig.queue);
		expect_waiters_told(waiters, -ESHUTDOWN);
		arm_after(other, 0, 1);
		expect_eq(take_one(other).data, 1);
		rig_close(&rig);
		return;
	}
	waiters_start(others, other);
	waiters_block(others);
	rig_close(&rig);
	expect_waiters_told(waiters, -ESHUTDOWN);
	expect_waiters_told(others, -ESHUTDOWN);
}

/* Closing the queue or the hub ends the owner's spin. An owner without a deadline does not spin. */
TEST(close_ends_a_spin, 60)
{
	static const uint64_t spins_ns[] = { HOUR, UINT64_MAX };

	for (unsigned i = 0; i < COUNT_OF(spins_ns); i++) {
		struct timerhub_config config = { .timers_max = 4, .spin_ns = spins_ns[i] };
		struct rig rig = rig_open_config(config);

		thread_blocks(timerhub_owner_tid(rig.hub));
		arm_after(rig.queue, HOUR / 2, 0);
		sleep_ns(10 * MS); /* gives the owner time to begin its spin */
		timerhub_queue_close(rig.queue);
		thread_blocks(timerhub_owner_tid(rig.hub));
		rig_close(&rig);
		rig = rig_open_config(config);
		arm_after(rig.queue, HOUR / 2, 0);
		sleep_ns(10 * MS);
		rig_close(&rig);
	}
}

#define QUEUES_MAX 65535
#define FDS 70000

/*
 * A hub has at most 65,535 queues. If the process may not open so many descriptors, EMFILE comes
 * first. Sanitized runs get there by a low limit, which saves ten seconds.
 */
TEST(many_queues_end_at_their_number, 120)
{
	rlim_t fds = scaled(FDS) < FDS ? scaled(FDS) : FDS;
	struct rlimit limit = { .rlim_cur = fds, .rlim_max = fds };
	struct rig rig = rig_open(4);
	struct timerhub_queue *queue = NULL;
	unsigned count = 1;
	bool all;
	int result;

	all = setrlimit(RLIMIT_NOFILE, &limit) == 0 && fds == FDS;
	while ((result = timerhub_queue_open(rig.hub, &queue, NULL)) == 0) {
		expect_cmp(++count, <=, QUEUES_MAX);
		if (count % 8192 == 0) {
			arm_after(queue, 0, count);
			expect_eq(take_one(queue).data, count);
		}
	}
	expect_eq(result, all ? -ENOSPC : -EMFILE);
	expect(!all || count == QUEUES_MAX);
	timerhub_queue_close(queue);
	expect_eq(timerhub_queue_open(rig.hub, &queue, NULL), 0);
	arm_after(queue, 0, 1);
	expect_eq(take_one(queue).data, 1);
	rig_close(&rig);
}

static void open_and_close(unsigned round)
{
	struct rig rig = round % 5 == 4 ? rig_manual(100) : rig_open(100);
	struct timerhub_queue *second = queue_open(rig.hub);

	for (unsigned i = 0; i < 20; i++)
		arm(i % 2 ? rig.queue : second,
		    SPEC(.expires_ns = i % 3 * 30 * US, .interval_ns = i % 5 ? 0 : MS));
	if (round % 5 == 0)
		take_one(second);
	if (round % 2)
		timerhub_queue_close(second);
	if (round % 4 == 0)
		timerhub_queue_close(rig.queue);
	rig_close(&rig);
}

TEST(a_thousand_cycles_leave_nothing, 120)
{
	unsigned threads = process_threads_at_rest();
	unsigned fds;
	unsigned mappings;

	for (unsigned i = 0; i < 20; i++)
		open_and_close(i);
	process_settles_at_threads(threads);
	fds = process_fd_count();
	mappings = process_mapping_count();
	for (unsigned i = 0; i < 1000; i++)
		open_and_close(i);
	process_settles_at_threads(threads);
	expect_eq(process_fd_count(), fds);
	/* the C library's heap may grow a little */
	if (!sanitized())
		expect_cmp(process_mapping_count(), <=, mappings + 2);
	else
		expect_cmp(process_mapping_count(), <, mappings + 500);
}

/* ---- law 7: bounded ---- */

/*
 * One live timer, and one armed and cancelled at full speed: one more slot on each CPU on which the
 * thread has run.
 */
TEST(capacity_under_churn_costs_no_memory, 60)
{
	struct rig rig = rig_open(0);
	uint64_t rss_bytes = 0;

	arm_after(rig.queue, 10 * HOUR, 0);
	for (unsigned i = 0; i < scaled(1500000); i++) {
		if (i == scaled(1500000) / 10)
			rss_bytes = process_rss_bytes();
		expect_eq(timerhub_cancel(rig.hub, arm_after(rig.queue, 10 * HOUR, i)), 0);
	}
	process_rss_is_still(rss_bytes);
	expect_eq(stats_of(rig.hub).live, 1);
	/* a thread that is moved to another CPU leaves up to 256 free slots behind */
	expect_cmp(stats_of(rig.hub).live_max, <=, 1 + 256 * sysconf(_SC_NPROCESSORS_CONF));
	rig_close(&rig);
}

TEST(capacity_is_reserved_at_open, 60)
{
	struct rig rig = rig_open(20000);
	unsigned mappings;

	arm_after(rig.queue, 0, 1);
	take_one(rig.queue);
	mappings = process_mapping_count();
	for (unsigned i = 0; i < 20000; i++)
		arm_after(rig.queue, i % 2 ? i * US : HOUR, i);
	for (unsigned i = 0; i < 10000; i++)
		take_one(rig.queue);
	if (!sanitized()) /* the memory of a sanitizer itself may grow */
		expect_eq(process_mapping_count(), mappings);
	else
		expect_cmp(process_mapping_count(), <, mappings + 100);
	rig_close(&rig);
}
