/* SPDX-License-Identifier: MIT */
/*
 * Which thread writes, and when: a lone caller itself, with no signal and no cancellation in
 * between; the writer what gathers meanwhile, and what compaction copies; a delivery's record with
 * the next change, or some milliseconds later. On a simulated disk whose syncs can be held back,
 * under a clock that only the test moves.
 */
#include <errno.h>
#include <journal.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

#define LOOK_NS (100 * US)

static struct sim_disk sim;
static struct disk_ops ops; /* the simulated disk's, except write and sync */
static const struct disk_ops *sim_ops;
static struct timerhub_journal *journal;

static struct {
	struct alarm alarm;
	_Atomic(uint64_t) now_ns;
} clocks;

/* What the thread that writes has done, and what it is told. */
static atomic_uint writes;
static atomic_ulong written_by; /* the thread of the last sync */
static atomic_bool masked;      /* no signal could have run a handler in the last sync */
static atomic_bool held;        /* syncs wait */
static atomic_bool in_sync;     /* one does */

/* ---- clock and disk ---- */

static uint64_t clock_now_ns(struct alarm *alarm)
{
	(void)alarm;
	return atomic_load(&clocks.now_ns);
}

static void clock_set(struct alarm *alarm, uint64_t due_ns)
{
	(void)alarm;
	(void)due_ns;
}

static void clock_wait(struct alarm *alarm, uint64_t timeout_ns)
{
	(void)alarm;
	(void)timeout_ns;
	(void)sched_yield();
}

static const struct alarm_ops clock_ops = {
	.wall_ns = clock_now_ns,
	.monotonic_ns = clock_now_ns,
	.set = clock_set,
	.wait = clock_wait,
};

static int64_t count_write(struct disk *disk, int file, const void *bytes, size_t count,
                           uint64_t offset)
{
	atomic_fetch_add(&writes, 1);
	return sim_ops->write(disk, file, bytes, count, offset);
}

static int hold_sync(struct disk *disk, int file)
{
	sigset_t mask;

	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
	atomic_store(&masked, sigismember(&mask, SIGTERM) == 1);
	atomic_store(&written_by, (unsigned long)pthread_self());
	atomic_store(&in_sync, true);
	while (atomic_load(&held))
		sleep_ns(LOOK_NS); /* a cancellation point, as fdatasync() is */
	atomic_store(&in_sync, false);
	return sim_ops->sync(disk, file);
}

static void begin(uint64_t lease_ns)
{
	struct timerhub_journal_config config = {
		.size = sizeof(config), .segment_bytes = 4096, .data_max = 600, .tasks_max = 100
	};

	config.lease_ns = lease_ns;
	sim_open(&sim, 1);
	sim_ops = sim.disk.ops;
	ops = *sim_ops;
	ops.write = count_write;
	ops.sync = hold_sync;
	sim.disk.ops = &ops;
	clocks.alarm.ops = &clock_ops;
	atomic_store(&clocks.now_ns, SEC);
	atomic_store(&held, false);
	expect_eq(journal_read_config(&config, &config), 0);
	expect_eq(journal_open(&journal, &sim.disk, &clocks.alarm, &config, true), 0);
}

static void end(void)
{
	timerhub_journal_close(journal);
	sim_close(&sim);
}

static uint64_t put(size_t bytes)
{
	static const char data[600];
	uint64_t id = 0;

	expect_eq(timerhub_journal_put(journal, 0, 0, data, bytes, &id), 0);
	return id;
}

static struct timerhub_journal_stats stats(void)
{
	struct timerhub_journal_stats now;

	expect_eq(timerhub_journal_stats(journal, &now), 0);
	return now;
}

static bool is_writing(enum journal_writing writing)
{
	bool is;

	lock_take(&journal->lock);
	is = journal->writing == writing;
	lock_give(&journal->lock);
	return is;
}

/* Until the writer sleeps, and for good: so the next change finds it asleep. */
static void await_rest(void)
{
	while (!is_writing(WRITING_NONE))
		sleep_ns(LOOK_NS);
}

/* ---- the tests ---- */

START_TEST(a_lone_caller_writes_its_own_changes)
{
	struct timerhub_task task;

	begin(0);
	for (unsigned i = 0; i < 20; i++) {
		await_rest();
		(void)put(10);
		expect_eq(atomic_load(&written_by), (unsigned long)pthread_self());
		expect(atomic_load(&masked));
		expect_eq(timerhub_journal_take(journal, &task, 0), 1);
		atomic_store(&written_by, 0);
		expect_eq(timerhub_journal_done(journal, &task), 0);
		expect_eq(atomic_load(&written_by), (unsigned long)pthread_self());
	}
	end();
}
END_TEST

static void *put_one(void *id)
{
	*(uint64_t *)id = put(10);
	return NULL;
}

/* A caller that leads is held back in its sync. */
static void hold_leader(pthread_t *ret_thread, uint64_t *id)
{
	await_rest();
	atomic_store(&in_sync, false);
	atomic_store(&held, true);
	thread_start(ret_thread, put_one, id);
	while (!atomic_load(&in_sync))
		sleep_ns(LOOK_NS);
	expect(is_writing(WRITING_CALLER));
}

START_TEST(the_writer_writes_what_gathers_while_a_caller_leads)
{
	uint64_t first = 0, second = 0;
	pthread_t leader, follower;
	bool gathered = false;

	begin(0);
	hold_leader(&leader, &first);
	/* Another change of that task would wait for the batch that is written out now. */
	lock_take(&journal->lock);
	expect_eq(tasks_find(&journal->tasks, 1)->changing, 1);
	expect_eq(tasks_find(&journal->tasks, 1)->batch, journal_gathering(journal)->number - 1);
	lock_give(&journal->lock);
	thread_start(&follower, put_one, &second);
	while (!gathered) {
		lock_take(&journal->lock);
		gathered = journal_gathering(journal)->first != NULL;
		lock_give(&journal->lock);
	}
	atomic_store(&held, false);
	thread_join(leader);
	thread_join(follower);
	expect_eq(first, 1);
	expect_eq(second, 2);
	expect_eq(atomic_load(&written_by), (unsigned long)journal->thread);
	/* And when it has nothing to do any more, callers lead again. */
	await_rest();
	(void)put(10);
	expect_eq(atomic_load(&written_by), (unsigned long)pthread_self());
	end();
}
END_TEST

/* Waiting and waking fail all the time, as a matter of course. */
START_TEST(tickets_leave_errno_alone)
{
	struct ticket ticket = { 0 };

	errno = EXDEV;
	ticket_set(&ticket, 1);
	ticket_wait(&ticket, 0, UINT64_MAX); /* it has changed: EAGAIN */
	expect_eq(errno, EXDEV);
	ticket_wait(&ticket, 1, 1000); /* ETIMEDOUT */
	expect_eq(errno, EXDEV);
	ticket_wake(&ticket, 1);
	expect_eq(errno, EXDEV);
}
END_TEST

START_TEST(a_leader_is_cancelled_behind_its_change_or_not_at_all)
{
	uint64_t id = 0;
	pthread_t leader;

	begin(0);
	hold_leader(&leader, &id);
	expect_eq(pthread_cancel(leader), 0);
	for (unsigned i = 0; i < 10; i++)
		sleep_ns(LOOK_NS);
	expect(is_writing(WRITING_CALLER));
	atomic_store(&held, false);
	thread_join(leader);
	expect_eq(put(10), 2);
	expect_eq(stats().put, 2);
	end();
}
END_TEST

START_TEST(a_delivery_is_written_with_the_next_change)
{
	struct timerhub_journal_stats before;
	struct timerhub_task task;

	begin(0);
	await_rest();
	(void)put(10);
	(void)put(10);
	before = stats();
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* No thread is woken for it at once. */
	expect(is_writing(WRITING_NONE));
	expect_eq(timerhub_journal_done(journal, &task), 0);
	expect_eq(stats().records, before.records + 2);
	expect_eq(stats().batches, before.batches + 1);
	end();
}
END_TEST

START_TEST(a_delivery_is_written_when_no_change_comes)
{
	struct timerhub_task task;
	unsigned before;

	begin(0);
	await_rest();
	(void)put(10);
	before = atomic_load(&writes);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* As long as time stands still nothing is written, however long that is. */
	sleep_ns(30 * MS);
	expect_eq(atomic_load(&writes), before);
	atomic_fetch_add(&clocks.now_ns, SEC);
	while (atomic_load(&writes) == before)
		sleep_ns(LOOK_NS);
	await_rest();
	expect(journal_gathering(journal)->used == 0);
	end();
}
END_TEST

START_TEST(a_delivery_while_a_caller_leads_is_written_too)
{
	struct timerhub_task task;
	uint64_t id = 0;
	pthread_t leader;
	unsigned before;

	begin(0);
	(void)put(10);
	hold_leader(&leader, &id);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	atomic_store(&held, false);
	thread_join(leader);
	before = atomic_load(&writes);
	atomic_fetch_add(&clocks.now_ns, SEC);
	while (atomic_load(&writes) == before)
		sleep_ns(LOOK_NS);
	end();
}
END_TEST

START_TEST(a_delivery_while_the_writer_writes_is_written_too)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT };
	struct timerhub_task task;
	unsigned before;

	begin(0);
	(void)put(10);
	await_rest();
	atomic_store(&in_sync, false);
	atomic_store(&held, true);
	expect_eq(timerhub_journal_submit(journal, &change, 1, 0), 0);
	while (!atomic_load(&in_sync))
		sleep_ns(LOOK_NS);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	atomic_store(&held, false);
	await_rest();
	before = atomic_load(&writes);
	atomic_fetch_add(&clocks.now_ns, SEC);
	while (atomic_load(&writes) == before)
		sleep_ns(LOOK_NS);
	end();
}
END_TEST

START_TEST(leases_end_although_no_call_is_made)
{
	struct timerhub_task task;
	unsigned before;
	bool over = false;

	begin(200 * MS);
	await_rest();
	(void)put(10);
	before = atomic_load(&writes);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* When the delivery is written, the writer has nothing else to wake up for. */
	atomic_fetch_add(&clocks.now_ns, 20 * MS);
	while (atomic_load(&writes) == before)
		sleep_ns(LOOK_NS);
	await_rest();
	atomic_fetch_add(&clocks.now_ns, 200 * MS);
	while (!over) {
		lock_take(&journal->lock);
		over = journal->stats.leases_over == 1 && journal->agenda.count == 1;
		lock_give(&journal->lock);
	}
	end();
}
END_TEST

START_TEST(a_lone_caller_leaves_compaction_to_the_writer)
{
	uint64_t dropped = 0;

	begin(0);
	for (unsigned i = 0; i < 2000 && dropped < 3; i++) {
		await_rest();
		expect_eq(timerhub_journal_cancel(journal, put(500)), 0);
		lock_take(&journal->lock);
		dropped = journal->stats.segments_dropped;
		expect_le(journal->stats.disk_bytes,
		          2 * journal->tasks.live_bytes + 2 * 4096 + 4096);
		lock_give(&journal->lock);
	}
	expect_le(3, dropped);
	end();
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("writer", argc, argv);
	tests_add(a_lone_caller_writes_its_own_changes, 60);
	tests_add(the_writer_writes_what_gathers_while_a_caller_leads, 60);
	tests_add(tickets_leave_errno_alone, 60);
	tests_add(a_leader_is_cancelled_behind_its_change_or_not_at_all, 60);
	tests_add(a_delivery_is_written_with_the_next_change, 60);
	tests_add(a_delivery_is_written_when_no_change_comes, 60);
	tests_add(a_delivery_while_a_caller_leads_is_written_too, 60);
	tests_add(a_delivery_while_the_writer_writes_is_written_too, 60);
	tests_add(leases_end_although_no_call_is_made, 60);
	tests_add(a_lone_caller_leaves_compaction_to_the_writer, 60);
	return tests_run();
}
