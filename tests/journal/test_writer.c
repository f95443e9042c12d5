/* SPDX-License-Identifier: MIT */
/*
 * Who writes to the disk, and when: a caller its own change, uninterrupted; one of its callers a
 * batch; the keeper what nobody waits for, and compaction; a delivery's record goes with the next
 * change or some milliseconds later. The disk can hold a sync, and only the test moves the clock.
 */
#include <errno.h>
#include <journal/keeper.h>
#include <journal/open.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <process_usage.h>

#include "model.h"

#define LOOK_NS (100 * US)

static struct sim_disk sim;
/* with count_write(), hold_sync() and watch_close() */
static struct disk_ops ops;
static const struct disk_ops *sim_ops;
static struct timerhub_journal *journal;

static struct {
	struct wall_timer timer;
	_Atomic(uint64_t) now_ns;
} clocks;

/* The following variables count the writes, and control the writing thread. */
static atomic_uint writes;
static atomic_ulong written_by; /* thread that made the last sync */
static atomic_bool masked;      /* signals were blocked during the last sync */
static atomic_bool held;        /* each sync waits while `held` is set */
static atomic_bool in_sync;     /* a sync waits at this moment */

/* ---- clock and disk ---- */

static uint64_t clock_now_ns(struct wall_timer *timer)
{
	(void)timer;
	return atomic_load(&clocks.now_ns);
}

static void clock_set(struct wall_timer *timer, uint64_t due_ns)
{
	(void)timer;
	(void)due_ns;
}

static void clock_wait(struct wall_timer *timer, uint64_t timeout_ns)
{
	(void)timer;
	(void)timeout_ns;
	(void)sched_yield();
}

static const struct wall_timer_ops clock_ops = {
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

/* A child forked during the close has the file no more, and must not close its number. */
static void watch_close(struct disk *disk, int file)
{
	if (journal) {
		expect(journal->log.file != file && journal->log.watermark != file);
		expect(journal->log.spare.file != file && journal->compactor.reader.file != file);
	}
	sim_ops->close(disk, file);
}

static int hold_sync(struct disk *disk, int file)
{
	sigset_t mask;

	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
	atomic_store(&masked, sigismember(&mask, SIGTERM) == 1);
	atomic_store(&written_by, (unsigned long)pthread_self());
	atomic_store(&in_sync, true);
	while (atomic_load(&held))
		sleep_ns(LOOK_NS); /* like fdatasync(), sleep_ns() is a cancellation point */
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
	ops.close = watch_close;
	sim.disk.ops = &ops;
	clocks.timer.ops = &clock_ops;
	atomic_store(&clocks.now_ns, SEC);
	atomic_store(&held, false);
	expect_eq(journal_read_config(&config, &config), 0);
	expect_eq(journal_open(&journal, &sim.disk, &clocks.timer, &config, true), 0);
}

static void end(void)
{
	timerhub_journal_close(journal);
	journal = NULL;
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

static bool is_writing(void)
{
	bool is;

	lock_take(&journal->lock);
	is = journal->commit.writing;
	lock_give(&journal->lock);
	return is;
}

/* Nobody writes, and the keeper sleeps. */
static bool is_at_rest(void)
{
	bool rests;

	lock_take(&journal->lock);
	rests = !journal->commit.writing && !journal->keeper.called && !journal->keeper.compacts;
	lock_give(&journal->lock);
	return rests;
}

/* And stays asleep. */
static void await_rest(void)
{
	while (!is_at_rest())
		sleep_ns(LOOK_NS);
}

/* ---- the tests ---- */

START_TEST(a_lone_caller_writes_its_own_changes)
{
	struct timerhub_journal_task task;

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

/* The leader, which writes the batch, held in its sync. */
static void hold_leader(pthread_t *ret_thread, uint64_t *id)
{
	await_rest();
	atomic_store(&in_sync, false);
	atomic_store(&held, true);
	thread_start(ret_thread, put_one, id);
	while (!atomic_load(&in_sync))
		sleep_ns(LOOK_NS);
	expect(is_writing());
}

/* Its change goes into the open batch. */
static void gather_one(pthread_t *ret_thread, uint64_t *id, unsigned waiting)
{
	bool gathered = false;

	thread_start(ret_thread, put_one, id);
	while (!gathered) {
		lock_take(&journal->lock);
		gathered = state_open_batch(&journal->commit)->waiting == waiting;
		lock_give(&journal->lock);
	}
}

/* One of `count` callers writes all their changes. */
static void another_leads_next(unsigned count)
{
	uint64_t first = 0, ids[2] = { 0 };
	pthread_t leader, followers[2];
	bool by_follower = false;

	begin(0);
	hold_leader(&leader, &first);
	/* a second change of task 1 would wait for the leader's batch */
	lock_take(&journal->lock);
	expect_eq(tasks_find(&journal->backlog.tasks, 1)->changing, 1);
	expect_eq(tasks_find(&journal->backlog.tasks, 1)->batch,
	          state_open_batch(&journal->commit)->number - 1);
	lock_give(&journal->lock);
	for (unsigned i = 0; i < count; i++)
		gather_one(&followers[i], &ids[i], i + 1);
	atomic_store(&held, false);
	thread_join(leader);
	expect_eq(first, 1);
	for (unsigned i = 0; i < count; i++) {
		thread_join(followers[i]);
		expect_eq(ids[i], 2 + i);
		by_follower |= atomic_load(&written_by) == (unsigned long)followers[i];
	}
	/* all followers in one batch, not the keeper's */
	expect_eq(stats().batches, 2);
	expect(by_follower);
	/* nobody waits: the next writes at once */
	await_rest();
	(void)put(10);
	expect_eq(atomic_load(&written_by), (unsigned long)pthread_self());
	end();
}

START_TEST(of_callers_that_gather_while_one_leads_another_leads_next)
{
	another_leads_next(1);
	another_leads_next(2);
}
END_TEST

/*
 * With `with_delivery` the keeper sleeps until it must write a delivery's record, which never
 * comes, since the clock stands still.
 */
static void keeper_writes_what_is_submitted(bool with_delivery)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT, .when_ns = HOUR };
	struct timerhub_journal_completion completion;
	struct timerhub_journal_task task;
	pthread_t leader;
	uint64_t id = 0;

	begin(0);
	(void)put(10);
	if (with_delivery)
		expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	hold_leader(&leader, &id);
	expect_eq(timerhub_journal_submit(journal, &change, 1, 7), 0);
	atomic_store(&held, false);
	thread_join(leader);
	while (timerhub_journal_completions(journal, &completion, 1) == 0)
		sleep_ns(LOOK_NS);
	expect_eq(completion.tag, 7);
	expect_eq(atomic_load(&written_by), (unsigned long)journal->keeper.thread);
	end();
}

START_TEST(what_is_submitted_while_a_caller_leads_the_keeper_writes)
{
	keeper_writes_what_is_submitted(false);
	keeper_writes_what_is_submitted(true);
}
END_TEST

START_TEST(a_batch_is_always_written)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT, .when_ns = HOUR };
	struct timerhub_journal_completion completions[8];
	unsigned rounds = scaled(300), submitted = 0, completed = 0;

	begin(0);
	for (unsigned round = 0; round < rounds; round++) {
		pthread_t threads[3];
		uint64_t ids[3];

		for (unsigned i = 0; i < COUNT_OF(threads); i++)
			thread_start(&threads[i], put_one, &ids[i]);
		submitted += timerhub_journal_submit(journal, &change, 1, 0) == 0;
		for (unsigned i = 0; i < COUNT_OF(threads); i++)
			thread_join(threads[i]);
		for (unsigned i = 0; i < COUNT_OF(ids); i++)
			expect_eq(timerhub_journal_cancel(journal, ids[i]), 0);
		while (completed < submitted) {
			int count = timerhub_journal_completions(journal, completions, 8);

			expect_le(0, count);
			for (int i = 0; i < count; i++)
				expect_eq(timerhub_journal_cancel(journal, completions[i].id), 0);
			completed += (unsigned)count;
		}
	}
	end();
}
END_TEST

/* A futex call may fail in normal work. */
START_TEST(eventcounts_leave_errno_alone)
{
	struct eventcount eventcount = { 0 };

	errno = EXDEV;
	eventcount_set(&eventcount, 1);
	/* the number has changed: EAGAIN */
	eventcount_wait(&eventcount, 0, UINT64_MAX);
	expect_eq(errno, EXDEV);
	eventcount_wait(&eventcount, 1, 1000); /* the futex call returns ETIMEDOUT */
	expect_eq(errno, EXDEV);
	eventcount_wake(&eventcount, 1);
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
	expect(is_writing());
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
	struct timerhub_journal_task task;

	begin(0);
	await_rest();
	(void)put(10);
	(void)put(10);
	before = stats();
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* No thread writes the delivery's record immediately after the delivery. */
	expect(!is_writing());
	expect_eq(timerhub_journal_done(journal, &task), 0);
	expect_eq(stats().records, before.records + 2);
	expect_eq(stats().batches, before.batches + 1);
	end();
}
END_TEST

START_TEST(a_delivery_is_written_when_no_change_comes)
{
	struct timerhub_journal_task task;
	unsigned before;

	begin(0);
	await_rest();
	(void)put(10);
	before = atomic_load(&writes);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* the clock stands still, so nobody writes the record */
	sleep_ns(30 * MS);
	expect_eq(atomic_load(&writes), before);
	atomic_fetch_add(&clocks.now_ns, SEC);
	while (atomic_load(&writes) == before)
		sleep_ns(LOOK_NS);
	await_rest();
	lock_take(&journal->lock);
	expect(state_open_batch(&journal->commit)->used == 0);
	/* nothing is left for later, so the keeper sleeps on */
	expect(journal->keeper.flush_ns == UINT64_MAX);
	lock_give(&journal->lock);
	end();
}
END_TEST

/* A change needs room. */
START_TEST(a_batch_full_of_deliveries_is_written_for_the_next_change)
{
	struct timerhub_journal_task task;
	unsigned count;

	begin(0);
	count = (unsigned)(journal->batch_bytes / RECORD_HEADER_BYTES);
	expect_lt(count, 100);
	for (unsigned i = 0; i < count; i++)
		(void)put(0);
	await_rest();
	for (unsigned i = 0; i < count; i++)
		expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect(!write_batch_has_room(state_open_batch(&journal->commit), RECORD_HEADER_BYTES));
	(void)put(0);
	end();
}
END_TEST

START_TEST(a_delivery_while_a_caller_leads_is_written_too)
{
	struct timerhub_journal_task task;
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

START_TEST(a_delivery_while_the_keeper_writes_is_written_too)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT };
	struct timerhub_journal_task task;
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
	struct timerhub_journal_task task;
	unsigned before;
	bool over = false;

	begin(200 * MS);
	await_rest();
	(void)put(10);
	before = atomic_load(&writes);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* the record is written, so there is no reason to wake */
	atomic_fetch_add(&clocks.now_ns, 20 * MS);
	while (atomic_load(&writes) == before)
		sleep_ns(LOOK_NS);
	await_rest();
	atomic_fetch_add(&clocks.now_ns, 200 * MS);
	while (!over) {
		lock_take(&journal->lock);
		over = journal->stats.leases_over == 1 && journal->backlog.agenda.count == 1;
		lock_give(&journal->lock);
	}
	end();
}
END_TEST

START_TEST(a_lone_caller_leaves_compaction_to_the_keeper)
{
	uint64_t dropped = 0;

	begin(0);
	for (unsigned i = 0; i < 2000 && dropped < 3; i++) {
		await_rest();
		expect_eq(timerhub_journal_cancel(journal, put(500)), 0);
		lock_take(&journal->lock);
		dropped = journal->stats.segments_dropped;
		expect_le(journal->stats.disk_bytes,
		          2 * journal->backlog.tasks.live_bytes + 2 * 4096 + 4096);
		lock_give(&journal->lock);
	}
	expect_le(3, dropped);
	end();
}
END_TEST

START_TEST(compaction_goes_on_after_a_backup_without_a_change)
{
	begin(0);
	await_rest();
	keeper_pause_compaction(journal);
	while (stats().held_up != TIMERHUB_JOURNAL_BY_BACKUP)
		expect_eq(timerhub_journal_cancel(journal, put(500)), 0);
	await_rest();
	keeper_resume_compaction(journal);
	while (stats().held_up != TIMERHUB_JOURNAL_NOT_HELD_UP)
		sleep_ns(LOOK_NS);
	await_rest();
	expect_lt(0, stats().segments_dropped);
	end();
}
END_TEST

START_TEST(a_forked_child_frees_nothing_that_a_thread_was_changing)
{
	void *wild = (void *)16;
	pid_t child;

	begin(200 * MS);
	(void)put(10);
	child = fork();
	if (child == 0) {
		journal->log.segments = wild;
		journal->compactor.buffer = journal->compactor.reader.buffer = wild;
		journal->completions.first = wild;
		journal->backlog.deliveries.places = wild;
		journal->backlog.tasks.buckets = journal->backlog.tasks.keys = wild;
		journal->backlog.agenda.cells = journal->backlog.leases.cells = wild;
		for (unsigned i = 0; i < JOURNAL_BATCHES; i++)
			journal->commit.batches[i].bytes = wild;
		timerhub_journal_close(journal);
		_exit(0);
	}
	child_ends_well(child);
	end();
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("writer", argc, argv);
	tests_add(a_lone_caller_writes_its_own_changes, 60);
	tests_add(of_callers_that_gather_while_one_leads_another_leads_next, 60);
	tests_add(what_is_submitted_while_a_caller_leads_the_keeper_writes, 60);
	tests_add(a_batch_is_always_written, 120);
	tests_add(eventcounts_leave_errno_alone, 60);
	tests_add(a_leader_is_cancelled_behind_its_change_or_not_at_all, 60);
	tests_add(a_delivery_is_written_with_the_next_change, 60);
	tests_add(a_delivery_is_written_when_no_change_comes, 60);
	tests_add(a_batch_full_of_deliveries_is_written_for_the_next_change, 60);
	tests_add(a_delivery_while_a_caller_leads_is_written_too, 60);
	tests_add(a_delivery_while_the_keeper_writes_is_written_too, 60);
	tests_add(leases_end_although_no_call_is_made, 60);
	tests_add(a_lone_caller_leaves_compaction_to_the_keeper, 60);
	tests_add(compaction_goes_on_after_a_backup_without_a_change, 60);
	tests_add(a_forked_child_frees_nothing_that_a_thread_was_changing, 60);
	return tests_run();
}
