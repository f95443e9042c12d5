/* SPDX-License-Identifier: MIT */
/* Each call and each of its errors, on a real database. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include <harness.h>
#include <process_usage.h>

static const struct timerhub_store_config short_lease = { .size = sizeof(short_lease),
	                                                  .lease_ns = 50 * MS,
	                                                  .timeout_ns = 10 * SEC };

static struct timerhub_store_change done_of(struct timerhub_store_task *task)
{
	return (struct timerhub_store_change){ .op = TIMERHUB_STORE_DONE, .task = task };
}

static void done(struct timerhub_store_task *task)
{
	expect_eq(timerhub_store_done(store, task), 0);
}

static struct timerhub_store_change put_of(const char *key)
{
	return (struct timerhub_store_change){
		.op = TIMERHUB_STORE_PUT, .key = key, .data = "d", .data_len = 1
	};
}

STORE_TEST(task_comes_with_all_that_was_put_and_ends_once, 60)
{
	struct timerhub_store_put put = { .size = sizeof(put),
		                          .when_ns = 3,
		                          .key = "schl\303\274ssel",
		                          .data = "a\0b",
		                          .data_len = 3 };
	struct timerhub_store_task task, copy;
	uint64_t id, before_ns = wall_ns();

	expect_eq(timerhub_store_put(store, &put, &id), 0);
	task = take_one();
	expect_eq(task.id, id);
	expect_le(before_ns, task.due_ns);
	expect_eq(task.due_ns % 1000, 0);
	expect_eq(task.attempts, 1);
	expect_eq(task.periods, 1);
	expect_eq(task.interval_ns, 0);
	expect_eq(strcmp(task.key, put.key), 0);
	expect_eq(task.data_len, 3);
	expect_eq(memcmp(task.data, "a\0b", 4), 0);
	expect_eq(sql_number("SELECT count(*) FROM timerhub_list WHERE state='taken'"
	                     " AND leased_until_us>due_us+29000000 AND bytes=3"),
	          1);
	copy = task;
	done(&task);
	expect(!task.data && !task.key);
	copy.data = copy.key = NULL;
	expect_eq(timerhub_store_done(store, &copy), -ENOENT);
	expect_eq(timerhub_store_retry(store, &copy, 0), -ENOENT);
	expect_eq(timerhub_store_park(store, &copy, 0), -ENOENT);
	expect_eq(timerhub_store_touch(store, &copy, 0), -ENOENT);
	expect_eq(timerhub_store_cancel(store, id), -ENOENT);
	take_none();
}

STORE_TEST(tasks_come_in_order_of_time_and_never_early, 60)
{
	struct timerhub_store_task tasks[100];
	struct dice dice = dice_new(1);
	int got = 0;

	for (int i = 0; i < 100; i++)
		(void)put_in(dice_below(&dice, 30 * MS), NULL, "x");
	while (got < 100) {
		int n = timerhub_store_take(store, tasks, 40, ARRIVES);

		expect_lt(0, n);
		got += n;
		for (int i = 0; i < n; i++) {
			expect_le(tasks[i].due_ns, wall_ns());
			expect(i == 0 || tasks[i - 1].due_ns <= tasks[i].due_ns);
			expect_eq(timerhub_store_done(store, &tasks[i]), 0);
		}
	}
}

STORE_TEST(key_names_one_live_task, 60)
{
	struct timerhub_store_put put = { .size = sizeof(put),
		                          .when_ns = HOUR,
		                          .key = "k",
		                          .data = "new",
		                          .data_len = 3,
		                          .interval_ns = 5 };
	struct timerhub_store_task task;
	uint64_t id, first;

	first = put_in(HOUR, "k", "old");
	expect_eq(timerhub_store_put(store, &put, &id), -EEXIST);
	expect_eq(id, first);
	put.flags = TIMERHUB_STORE_REPLACE;
	put.when_ns = 0;
	expect_eq(timerhub_store_put(store, &put, &id), 0);
	expect_eq(id, first);
	task = take_one();
	expect_eq(strcmp(task.data, "new"), 0);
	expect_eq(task.interval_ns, 1000);
	id = 0;
	expect_eq(timerhub_store_put(store, &put, &id), -EEXIST); /* a worker has it */
	expect_eq(id, first);
	expect_eq(timerhub_store_cancel_key(store, "k"), -EBUSY);
	expect_eq(timerhub_store_move_key(store, "k", 0, 0), -EBUSY);
	expect_eq(timerhub_store_park(store, &task, 7), 0);
	expect_eq(sql_number("SELECT reason FROM timerhub_list WHERE state='parked'"), 7);
	put.flags = 0;
	expect_eq(timerhub_store_put(store, &put, &id), -EEXIST); /* a parked one holds its key */
	put.flags = TIMERHUB_STORE_REPLACE;
	put.interval_ns = 0;
	expect_eq(timerhub_store_put(store, &put, &id), 0);
	task = take_one();
	expect_eq(task.id, first);
	expect_eq(task.attempts, 1);
	done(&task);
	expect_cmp(put_in(HOUR, "k", NULL), >, first);
	expect_eq(timerhub_store_cancel_key(store, "k"), 0);
	expect_eq(timerhub_store_cancel_key(store, "k"), -ENOENT);
	expect_eq(timerhub_store_move_key(store, "k", 0, 0), -ENOENT);
}

STORE_TEST(move_gives_a_new_time, 60)
{
	struct timerhub_store_task task;
	uint64_t id;

	id = put_in(TIMERHUB_NEVER, NULL, "x");
	expect_eq(sql_number("SELECT count(*) FROM timerhub_list WHERE state='waiting'"
	                     " AND due_us IS NULL"),
	          1);
	take_none();
	expect_eq(timerhub_store_move(store, id, wall_ns(), TIMERHUB_ABSOLUTE), 0);
	task = take_one();
	expect_eq(timerhub_store_move(store, id, 0, 0), -EBUSY);
	expect_eq(timerhub_store_retry(store, &task, HOUR), 0);
	expect_eq(sql_number("SELECT attempts FROM timerhub_list"), 1);
	expect_eq(timerhub_store_move(store, id, 0, 0), 0);
	expect_eq(sql_number("SELECT attempts FROM timerhub_list"), 0);
	expect_eq(timerhub_store_move(store, id, TIMERHUB_NEVER, 0), 0);
	take_none();
	expect_eq(timerhub_store_move(store, id, 1, TIMERHUB_ABSOLUTE), -ERANGE);
	expect_eq(timerhub_store_move(store, id + 1, 0, 0), -ENOENT);
	expect_eq(timerhub_store_move(store, UINT64_MAX, 0, 0), -ENOENT);
}

STORE_TEST(id_of_another_queue_is_unknown, 60)
{
	const struct timerhub_store_config other = { .size = sizeof(other), .queue = "other" };
	const struct timerhub_store_put own = { .size = sizeof(own), .key = "own" };
	struct timerhub_store *second;
	struct timerhub_store_task task;
	uint64_t id;

	second = fixture_open(&other);
	id = put_in(0, "k", "x");
	expect_eq(timerhub_store_cancel(second, id), -ENOENT);
	expect_eq(timerhub_store_cancel_key(second, "k"), -ENOENT);
	expect_eq(timerhub_store_take(second, &task, 1, 0), 0);
	expect_eq(timerhub_store_put(second, &own, NULL), 0);
	expect_eq(timerhub_store_take(second, &task, 1, ARRIVES),
	          1); /* and not what is due longer */
	expect_eq(strcmp(task.key, own.key), 0);
	timerhub_store_release(second, &task);
	timerhub_store_close(second);
}

TEST(answer_after_the_lease_counts_until_another_has_the_task, 60)
{
	struct timerhub_store_task task;

	fixture_begin(&short_lease);
	(void)put_in(0, NULL, "x");
	task = take_one();
	sleep_ns(60 * MS);
	done(&task);
	(void)put_in(0, NULL, "y");
	task = take_one();
	sleep_ns(60 * MS);
	/* after the lease the task can be cancelled */
	expect_eq(timerhub_store_cancel(store, task.id), 0);
	expect_eq(timerhub_store_done(store, &task), -ENOENT);
	expect(!task.data);
	fixture_end();
}

TEST(resting_taker_gets_a_task_whose_lease_ends, 60)
{
	struct timerhub_store_task task;
	uint64_t before_ns;

	fixture_begin(&short_lease);
	(void)put_in(0, NULL, "x");
	task = take_one();
	timerhub_store_release(store, &task);
	before_ns = monotonic_ns();
	task = take_one(); /* nobody writes meanwhile */
	expect_lt(monotonic_ns() - before_ns, ARRIVES / 2);
	expect_eq(task.attempts, 2);
	done(&task);
	fixture_end();
}

TEST(last_delivery_is_followed_by_parking, 60)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .attempts_max = 2,
		                                      .lease_ns = 30 * MS };
	struct timerhub_store_task task;
	uint64_t id;

	fixture_begin(&config);
	id = put_in(0, "k", "x");
	task = take_one();
	expect_eq(timerhub_store_retry(store, &task, 0), 0);
	task = take_one();
	expect_eq(task.attempts, 2);
	timerhub_store_release(store, &task);
	sleep_ns(40 * MS);
	take_none();
	expect_eq(sql_number("SELECT reason FROM timerhub_list WHERE state='parked'"), UINT32_MAX);
	expect_eq(timerhub_store_done(store, &task), -ESTALE);
	expect_eq(timerhub_store_move(store, id, 0, 0), 0);
	task = take_one();
	expect_eq(task.attempts, 1);
	expect_eq(timerhub_store_retry(store, &task, 0), 0);
	task = take_one();
	expect_eq(timerhub_store_retry(store, &task, 0), 0);
	take_none();
	expect_eq(timerhub_store_cancel_key(store, "k"), 0);
	fixture_end();
}

TEST_LOOP(attempts_are_25_unless_the_config_says_otherwise, 60, 2)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .attempts_max = UINT32_MAX };
	struct timerhub_store_task task;

	fixture_begin(_i == 0 ? NULL : &config);
	(void)put_in(0, NULL, "x");
	for (unsigned i = 1; i <= 25; i++) {
		task = take_one();
		expect_eq(task.attempts, i);
		expect_eq(timerhub_store_retry(store, &task, 0), 0);
	}
	if (_i == 0) {
		take_none();
		expect_eq(sql_number("SELECT count(*) FROM timerhub_list WHERE state='parked'"), 1);
	} else {
		task = take_one();
		expect_eq(task.attempts, 26);
		done(&task);
	}
	fixture_end();
}

STORE_TEST(commit_makes_all_or_none, 60)
{
	struct timerhub_store_change changes[3];
	struct timerhub_store_task task;

	(void)put_in(0, "taken", "x");
	task = take_one();
	changes[0] = put_of("a");
	changes[0].when_ns = HOUR;
	changes[1] = done_of(&task);
	changes[2] = put_of("a");
	expect_eq(timerhub_store_commit(store, changes, 3), -EEXIST);
	expect_eq(changes[0].result, 0);
	expect_eq(changes[1].result, 0);
	expect_eq(changes[2].result, -EEXIST);
	expect(task.data != NULL);
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 1);
	changes[2] = done_of(&task);
	expect_eq(timerhub_store_commit(store, changes, 3), -ENOENT);
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 1);
	expect(!task.data); /* of the change that found no task */
	(void)put_in(0, "k", "x");
	task = take_one();
	changes[0] = done_of(&task);
	changes[1] = put_of("k");
	changes[2] = put_of(NULL);
	expect_eq(timerhub_store_commit(store, changes, 3), 0);
	expect(!task.data && !task.key);
	expect_cmp(changes[1].id, >, task.id);
	expect_eq(changes[2].id, changes[1].id + 1);
}

static int stop_it(void *context)
{
	(void)context;
	return 1;
}

/* With count_changes, an INSERT that changes nothing returns a row too. */
STORE_TEST_LOOP(commit_in_is_true_when_the_caller_commits, 60, 2)
{
	struct timerhub_store_change changes[2];
	struct timerhub_store_task task;

	sql(_i == 0 ? "PRAGMA count_changes=0" : "PRAGMA count_changes=1");
	(void)put_in(0, "k", "x");
	task = take_one();
	changes[0] = done_of(&task);
	changes[1] = put_of("n");
	changes[1].when_ns = HOUR;
	expect_eq(timerhub_store_commit_in(store, plain, changes, 2), -EINVAL);
	sql("CREATE TABLE mine(x INTEGER PRIMARY KEY); INSERT INTO mine VALUES(41)");
	sql("BEGIN IMMEDIATE; INSERT INTO mine VALUES(77)");
	expect_eq(timerhub_store_commit_in(store, plain, changes, 2), 0);
	expect_eq(sqlite3_last_insert_rowid(plain), 77);
	expect(task.data != NULL);
	sql("ROLLBACK");
	expect_eq(sql_number("SELECT id FROM timerhub_tasks"), task.id);
	sql("BEGIN IMMEDIATE");
	changes[1] = put_of("k"); /* free, since the task with it has ended before */
	expect_eq(timerhub_store_commit_in(store, plain, changes, 2), 0);
	expect_eq(timerhub_store_commit_in(store, plain, &changes[1], 1), -EEXIST);
	sql("COMMIT");
	expect_eq(timerhub_store_sync(store), 0);
	timerhub_store_release(store, &task);
	expect_eq(sql_number("SELECT id FROM timerhub_tasks"), changes[1].id);
	sql("BEGIN");
	expect_eq(sql_number("SELECT count(*) FROM mine"), 1);
	changes[1].key = "o";
	expect_eq(timerhub_store_commit_in(store, plain, &changes[1], 1), -EDEADLK);
	sql("COMMIT; BEGIN"); /* which has not even read yet */
	expect_eq(timerhub_store_commit_in(store, plain, &changes[1], 1), 0);
	sql("COMMIT");
}

/* A commit with an invalid change must also overwrite old results in the changes beside it. */
STORE_TEST(change_that_cannot_be_asked_for_is_the_only_one_with_an_error, 60)
{
	struct timerhub_store_change changes[3];

	for (int call = 0; call < 2; call++) {
		changes[0] = put_of("k");
		changes[1] = put_of("");
		changes[2] = put_of("n");
		changes[0].result = changes[2].result = -ENOENT;
		sql("BEGIN IMMEDIATE");
		if (call == 0)
			expect_eq(timerhub_store_commit(store, changes, 3), -EINVAL);
		else
			expect_eq(timerhub_store_commit_in(store, plain, changes, 3), -EINVAL);
		sql("COMMIT");
		expect_eq(changes[0].result, 0);
		expect_eq(changes[1].result, -EINVAL);
		expect_eq(changes[2].result, 0);
	}
}

STORE_TEST(commit_in_refuses_what_it_cannot_promise, 60)
{
	struct timerhub_store_change change = put_of("k"), two[2] = { change, change };
	sqlite3_stmt *writes;
	sqlite3 *memory;
	char text[160];

	expect_eq(sqlite3_open(":memory:", &memory), SQLITE_OK);
	sql_on(memory, "BEGIN IMMEDIATE");
	expect_eq(timerhub_store_commit_in(store, memory, &change, 1), -EINVAL);
	sql_on(memory, "COMMIT");
	(void)snprintf(text, sizeof(text), "ATTACH '%s' AS a; BEGIN IMMEDIATE", database);
	sql_on(memory, text);
	expect_eq(timerhub_store_commit_in(store, memory, &change, 1), -EINVAL);
	expect_eq(sqlite3_close(memory), SQLITE_OK);
	sql("CREATE TABLE mine(x); BEGIN IMMEDIATE");
	expect_eq(sqlite3_prepare_v2(plain, "INSERT INTO mine VALUES(1) RETURNING x", -1, &writes,
	                             NULL),
	          SQLITE_OK);
	expect_eq(sqlite3_step(writes), SQLITE_ROW);
	expect_eq(timerhub_store_commit_in(store, plain, two, 2), -EINVAL);
	expect_eq(sqlite3_finalize(writes), SQLITE_OK);
	/* rand() stands for a function of another copy of SQLite than the library's */
	expect_eq(timerhub_store_commit_in_checked(store, plain, &change, 1, rand), -EXDEV);
	sqlite3_progress_handler(plain, 1, stop_it, NULL);
	expect_eq(timerhub_store_commit_in(store, plain, &change, 1), -ECANCELED);
	sqlite3_progress_handler(plain, 0, NULL, NULL);
	if (!sqlite3_get_autocommit(plain))
		sql("ROLLBACK");
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 0);
	expect_eq(timerhub_store_open_checked(&store, database, NULL, rand), -EXDEV);
	expect_eq(timerhub_store_install_checked(plain, rand), -EXDEV);
}

static struct timerhub_store_completion complete(void)
{
	struct timerhub_store_completion completion;

	expect(fd_readable_within(timerhub_store_completion_fd(store), ARRIVES));
	while (timerhub_store_completions(store, &completion, 1) == 0)
		expect(fd_readable_within(timerhub_store_completion_fd(store), ARRIVES));
	return completion;
}

STORE_TEST(submit_completes_in_order, 60)
{
	struct timerhub_store_change changes[2];
	struct timerhub_store_completion completion;
	struct timerhub_store_task task;
	char key[8] = "k", data[8] = "data";

	changes[0] = put_of(key);
	changes[0].data = data;
	changes[0].data_len = 4;
	expect_eq(timerhub_store_submit(store, changes, 1, 5), 0);
	expect_eq(timerhub_store_submit(store, changes, 1, 6), 0);
	(void)memset(key, 0, sizeof(key));
	(void)memset(data, 0, sizeof(data));
	completion = complete();
	expect_eq(completion.tag, 5);
	expect_eq(completion.result, 0);
	expect_eq(completion.id, 1);
	completion = complete();
	expect_eq(completion.tag, 6);
	expect_eq(completion.result, -EEXIST);
	task = take_one();
	expect_eq(strcmp(task.data, "data"), 0);
	expect_eq(strcmp(task.key, "k"), 0);
	changes[0] = done_of(&task);
	changes[1] = put_of("n");
	expect_eq(timerhub_store_submit(store, changes, 2, 7), 0);
	completion = complete();
	expect_eq(completion.result, 0);
	expect_eq(completion.id, task.id);
	expect(!task.data && !task.key);
	changes[0] = put_of("");
	expect_eq(timerhub_store_submit(store, changes, 1, 8), -EINVAL);
}

STORE_TEST(task_that_was_released_is_not_freed_by_its_completion, 60)
{
	struct timerhub_store_change change;
	struct timerhub_store_task task;

	(void)put_in(0, "k", "x");
	task = take_one();
	change = done_of(&task);
	expect_eq(timerhub_store_submit(store, &change, 1, 1), 0);
	timerhub_store_release(store, &task);
	expect_eq(complete().result, 0);
	expect(!task.data && !task.key);
}

STORE_TEST(submits_in_flight_are_bounded, 60)
{
	struct timerhub_store_change change = put_of(NULL);
	struct timerhub_store_completion completions[64];
	int n, all = 0;

	change.when_ns = HOUR;
	for (int i = 0; i < 1024; i++)
		expect_eq(timerhub_store_submit(store, &change, 1, (uint64_t)i), 0);
	expect_eq(timerhub_store_submit(store, &change, 1, 0), -EAGAIN);
	while (all < 1024) {
		expect(fd_readable_within(timerhub_store_completion_fd(store), ARRIVES));
		n = timerhub_store_completions(store, completions, 64);
		for (int i = 0; i < n; i++) {
			expect_eq(completions[i].tag, all + i);
			expect_eq(completions[i].result, 0);
		}
		all += n;
	}
	expect_eq(timerhub_store_submit(store, &change, 1, 0), 0);
}

TEST(wrong_arguments_are_refused, 60)
{
	static char key[257], big[sizeof(struct timerhub_store_config) + 8];
	const struct {
		struct timerhub_store_put put;
		int wanted;
	} puts[] = {
		{ { .flags = 2 }, -EINVAL },
		{ { .flags = TIMERHUB_STORE_REPLACE }, -EINVAL }, /* of no key */
		{ { .data_len = 1 }, -EINVAL },
		{ { .data = "12345678901", .data_len = 11 }, -EMSGSIZE },
		{ { .key = "" }, -EINVAL },
		{ { .key = "\377" }, -EINVAL },
		{ { .key = key }, -EINVAL },
		{ { .key = key + 1, .data = "1234567890", .data_len = 10 }, 0 },
		{ { .when_ns = UINT64_MAX - 1 }, -ERANGE },
		{ { .when_ns = SEC, .flags = TIMERHUB_ABSOLUTE }, -ERANGE },
	};
	struct timerhub_store_config config = { .size = sizeof(config), .data_max = 10 };
	struct timerhub_store_put put = { .size = sizeof(put) };
	uint64_t id;

	fixture_begin(&config);
	expect_eq(timerhub_store_open(NULL, database, NULL), -EINVAL);
	expect_eq(timerhub_store_open(&store, ":memory:", NULL), -EINVAL);
	expect_eq(timerhub_store_install(NULL), -EINVAL);
	config.flags = 1;
	expect_eq(timerhub_store_open(&store, database, &config), -EINVAL);
	config = (struct timerhub_store_config){ .size = sizeof(big) };
	(void)memcpy(big, &config, sizeof(config));
	big[sizeof(config)] = 1;
	expect_eq(timerhub_store_open(&store, database, (const void *)big), -E2BIG);
	expect_eq(timerhub_store_put(NULL, &put, &id), -EINVAL);
	expect_eq(timerhub_store_put(store, NULL, &id), -EINVAL);
	(void)memset(key, 'k', sizeof(key) - 1);
	for (unsigned i = 0; i < COUNT_OF(puts); i++) {
		put = puts[i].put;
		put.size = sizeof(put);
		expect_context("put", i, 0);
		expect_eq(timerhub_store_put(store, &put, &id), puts[i].wanted);
	}
	fixture_end();
}

STORE_TEST(wrong_arguments_of_other_calls_are_refused, 60)
{
	struct timerhub_store_change change = put_of("k");
	struct timerhub_store_task task = { .id = 1 };
	struct timerhub_store_completion completion;
	struct timerhub_store_stats stats = { .size = 8 };

	expect_eq(timerhub_store_cancel_key(store, NULL), -EINVAL);
	expect_eq(timerhub_store_move(store, 1, 0, 2), -EINVAL);
	expect_eq(timerhub_store_take(store, &task, 0, 0), -EINVAL);
	expect_eq(timerhub_store_take(store, NULL, 1, 0), -EINVAL);
	expect_eq(timerhub_store_done(store, NULL), -EINVAL);
	expect_eq(timerhub_store_retry(store, &task, UINT64_MAX), -ERANGE);
	expect_eq(timerhub_store_commit(store, &change, 0), -EINVAL);
	expect_eq(timerhub_store_commit(store, &change, 1001), -EINVAL);
	change.op = 7;
	expect_eq(timerhub_store_commit(store, &change, 1), -EINVAL);
	change = put_of("k");
	change.reserved[3] = 1;
	expect_eq(timerhub_store_commit(store, &change, 1), -EINVAL);
	change = done_of(NULL);
	expect_eq(timerhub_store_submit(store, &change, 1, 0), -EINVAL);
	expect_eq(timerhub_store_completions(store, &completion, 0), -EINVAL);
	expect_eq(timerhub_store_stats(store, &stats), -EINVAL);
	expect_eq(timerhub_store_fd(NULL), -EINVAL);
	expect_eq(timerhub_store_completion_fd(NULL), -EINVAL);
	expect_eq(timerhub_store_sync(NULL), -EINVAL);
	timerhub_store_close(NULL);
	timerhub_store_release(store, NULL);
}

TEST(writer_that_stays_is_waited_for_until_the_timeout, 60)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .timeout_ns = 100 * MS };
	struct timerhub_store_put put = { .size = sizeof(put) };
	struct timerhub_store_change change = put_of(NULL);
	struct timerhub_store_stats stats = { 0 };
	struct timerhub_store_task task;
	uint64_t before_ns;

	/* The store must not use SQLite's shared cache, in which a writer also stops readers. */
	expect_eq(sqlite3_enable_shared_cache(1), SQLITE_OK);
	fixture_begin(&config);
	(void)put_in(0, NULL, "x");
	sql("BEGIN IMMEDIATE; UPDATE timerhub_tasks SET reason=reason");
	expect_eq(timerhub_store_stats(store, &stats), 0);
	before_ns = monotonic_ns();
	expect_eq(timerhub_store_put(store, &put, NULL), -EAGAIN);
	expect_le(before_ns + 100 * MS, monotonic_ns());
	expect_eq(timerhub_store_submit(store, &change, 1, 1), 0);
	expect_eq(complete().result, -EAGAIN);
	expect_eq(timerhub_store_take(store, &task, 1, 150 * MS), 0);
	expect_eq(timerhub_store_open(&store, database, &config), -EBUSY);
	sql("COMMIT");
	task = take_one();
	done(&task);
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 0);
	fixture_end();
}

static void *put_one(void *result)
{
	struct timerhub_store_put put = { .size = sizeof(put), .when_ns = HOUR };

	*(int *)result = timerhub_store_put(store, &put, NULL);
	return NULL;
}

/* A take must not wait beyond its timeout for a put, which waits longer for the write lock. */
TEST(take_behind_a_change_that_waits_ends_in_its_own_time, 60)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .timeout_ns = 10 * SEC };
	struct timerhub_store_task task;
	uint64_t before_ns;
	pthread_t putter;
	int result = -1;

	fixture_begin(&config);
	sql("BEGIN IMMEDIATE");
	thread_start(&putter, put_one, &result);
	sleep_ns(20 * MS);
	before_ns = monotonic_ns();
	expect_eq(timerhub_store_take(store, &task, 1, 60 * MS), 0);
	expect_lt(monotonic_ns() - before_ns, 5 * SEC);
	sql("COMMIT");
	thread_join(putter);
	expect_eq(result, 0);
	fixture_end();
}

/* A take with timeout 0 must return soon, although another connection has the write lock. */
TEST(take_without_time_leaves_a_writer_alone_and_the_fd_tells_when_it_has_gone, 60)
{
	const struct timerhub_store_config patient = { .size = sizeof(patient),
		                                       .timeout_ns = HOUR };
	struct timerhub_store_task task;
	uint64_t before_ns;
	int fd;

	fixture_begin(&patient);
	fd = timerhub_store_fd(store);
	(void)put_in(0, NULL, "x");
	sql("BEGIN IMMEDIATE");
	do {
		before_ns = monotonic_ns();
		take_none();                              /* and not after an hour */
	} while (monotonic_ns() - before_ns >= 100 * MS); /* perhaps the machine has stalled */
	sql("COMMIT");
	do
		expect(fd_readable_within(fd, ARRIVES));
	while (timerhub_store_take(store, &task, 1, 0) == 0);
	done(&task);
	fixture_end();
}

/* A take must end in time, although it shall lengthen the WAL, for which it needs the lock. */
TEST(take_behind_a_writer_does_not_wait_for_room_too, 60)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .timeout_ns = 50 * MS };
	struct timerhub_store_task task;
	uint64_t took_ns;

	fixture_begin(&config);
	do {
		(void)put_in(0, NULL, "x");
		sql("PRAGMA wal_checkpoint(TRUNCATE); BEGIN IMMEDIATE");
		took_ns = monotonic_ns();
		expect_eq(timerhub_store_take(store, &task, 1, 300 * MS), 0);
		took_ns = monotonic_ns() - took_ns;
		sql("COMMIT");
	} while (took_ns >= SEC); /* perhaps the machine has stalled */
	fixture_end();
}

static int opens(const char *path)
{
	struct timerhub_store *other = NULL;
	int result = timerhub_store_open(&other, path, NULL);

	timerhub_store_close(other);
	return result;
}

STORE_TEST(open_says_what_is_wrong_with_the_file, 60)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s-other", database);
	file = fopen(path, "w");
	for (int i = 0; i < 5000; i++)
		(void)fputc('x', file);
	(void)fclose(file);
	expect_eq(opens(path), -EBADMSG);
	expect_eq(opens("/nowhere/at/all"), -ENOENT);
	sql("UPDATE timerhub_about SET version=9");
	expect_eq(opens(database), 0);
	sql("UPDATE timerhub_about SET min_version=2");
	expect_eq(opens(database), -EOPNOTSUPP);
	expect_eq(timerhub_store_install(plain), -EOPNOTSUPP);
}

STORE_TEST(descriptors_that_are_refused_are_told_and_none_is_left, 60)
{
	struct rlimit all, few;
	unsigned before = 0, refused = 0;
	int result;

	before = process_fd_count();
	expect_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = all;
	do {
		few.rlim_cur = before + refused;
		expect_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		result = opens(database);
		expect_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
		expect_context("limit", before + refused, 0);
		expect(result == 0 || result == -EMFILE);
		refused++;
	} while (result < 0);
	expect_lt(5, refused);
	/* SQLite keeps the database's descriptors for its next open while it has locks there */
	expect_le(process_fd_count(), before + 2);
}

STORE_TEST(file_that_may_not_be_written_is_told, 60)
{
	char folder[sizeof(database)], other[sizeof(database) + 8];
	pid_t child;

	timerhub_store_close(store);
	expect_eq(sqlite3_close(plain), SQLITE_OK);
	expect_eq(chmod(database, 0444), 0);
	*strrchr(strcpy(folder, database), '/') = '\0';
	expect_eq(chmod(folder, 0755), 0);
	(void)snprintf(other, sizeof(other), "%s-new", database);
	child = fork(); /* nobody has the file open */
	if (child == 0) {
		/* only root can make the folder read-only, for this process alone */
		if (unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		    mount(folder, folder, NULL, MS_BIND, NULL) == 0 &&
		    mount(NULL, folder, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0) {
			expect_eq(opens(database), -EROFS);
			expect_eq(opens(other), -EROFS);
			expect_eq(umount(folder), 0);
		}
		expect(geteuid() != 0 || setuid(65534) == 0);
		expect_eq(opens(database), -EACCES);
		expect_eq(opens(other), -EACCES);
		_exit(0);
	}
	child_ends_well(child);
	expect_eq(chmod(database, 0644), 0);
	store = fixture_open(NULL);
	plain = sql_open();
}

TEST(process_that_limits_itself_goes_on, 60)
{
	struct rlimit files = { 1 << 20, 1 << 20 };
	char folder[sizeof(database)];
	pid_t child;

	fixture_name();
	*strrchr(strcpy(folder, database), '/') = '\0';
	child = fork();
	if (child == 0) {
		expect_eq(setrlimit(RLIMIT_FSIZE, &files), 0);
		fixture_begin(NULL);
		expect_eq(chmod(folder, 0), 0);
		expect(geteuid() != 0 || setuid(65534) == 0);
		(void)put_in(0, NULL, "x");
		_exit(0);
	}
	child_ends_well(child);
	expect_eq(chmod(folder, 0700), 0);
	fixture_end();
}

TEST(sqlite_without_mutexes_is_refused, 60)
{
	fixture_name();
	expect_eq(sqlite3_config(SQLITE_CONFIG_SINGLETHREAD), SQLITE_OK);
	expect_eq(timerhub_store_open(&store, database, NULL), -EOPNOTSUPP);
	fixture_end();
}

/* Install must change no setting of the database, and open only the journal mode. */
TEST(users_file_keeps_its_settings, 60)
{
	const struct timerhub_store_config hasty = { .size = sizeof(hasty), .timeout_ns = 50 * MS };
	static const char settings[] =
		"SELECT user_version||' '||application_id||' '||page_size||' '||auto_vacuum FROM"
		" pragma_user_version,pragma_application_id,pragma_page_size,pragma_auto_vacuum";

	fixture_name();
	plain = sql_open();
	sql("PRAGMA page_size=1024; PRAGMA auto_vacuum=1; PRAGMA user_version=7;"
	    "PRAGMA application_id=8; CREATE TABLE mine(x)");
	expect_eq(strcmp(sql_text(settings), "7 8 1024 1"), 0);
	expect_eq(timerhub_store_install(plain), 0);
	expect_eq(strcmp(sql_text(settings), "7 8 1024 1"), 0);
	expect_eq(strcmp(sql_text("PRAGMA journal_mode"), "delete"), 0);
	sql("BEGIN; SELECT * FROM mine"); /* nobody can make it a WAL now */
	expect_eq(timerhub_store_open(&store, database, &hasty), -EBUSY);
	sql("COMMIT");
	store = fixture_open(NULL);
	expect_eq(strcmp(sql_text(settings), "7 8 1024 1"), 0);
	expect_eq(strcmp(sql_text("PRAGMA journal_mode"), "wal"), 0);
	fixture_end();
}

STORE_TEST(log_stays_short_while_much_is_written, 60)
{
	static char data[20000];
	struct timerhub_store_change changes[100];
	struct timerhub_store_stats stats = { 0 };
	uint64_t written = 0;

	/* on a busy machine the store's thread, which keeps the log short, can be late */
	while (written < 60u << 20 || (stats.wal_bytes * 3 > written * 2 && written < 1u << 30)) {
		for (unsigned k = 0; k < COUNT_OF(changes); k++)
			changes[k] = (struct timerhub_store_change){ .op = TIMERHUB_STORE_PUT,
				                                     .data = data,
				                                     .data_len = sizeof(data),
				                                     .when_ns = TIMERHUB_NEVER };
		expect_eq(timerhub_store_commit(store, changes, COUNT_OF(changes)), 0);
		written += COUNT_OF(changes) * sizeof(data);
		expect_eq(timerhub_store_stats(store, &stats), 0);
	}
	expect_cmp(stats.checkpoints, >, 0);
	expect_cmp(stats.wal_bytes * 3, <=, written * 2);
}

TEST(install_joins_the_callers_transaction, 60)
{
	sqlite3 *own;

	expect_eq(sqlite3_open(":memory:", &own), SQLITE_OK);
	sql_on(own, "BEGIN; CREATE TABLE mine(x)");
	expect_eq(timerhub_store_install(own), 0);
	expect_eq(sqlite3_get_autocommit(own), 0);
	sql_on(own, "ROLLBACK");
	expect_eq(sqlite3_exec(own, "SELECT 1 FROM timerhub_tasks", NULL, NULL, NULL),
	          SQLITE_ERROR);
	expect_eq(timerhub_store_install(own), 0);
	expect_eq(timerhub_store_install(own), 0);
	sql_on(own, "INSERT INTO timerhub_tasks(due_us) VALUES(NULL)");
	sql_on(own, "DROP TABLE timerhub_clock; DROP TABLE timerhub_about");
	expect_eq(timerhub_store_install(own), -EBADMSG); /* a stranger's timerhub_tasks */
	expect_eq(sqlite3_close(own), SQLITE_OK);
}

static void sql_refused(const char *text)
{
	expect_eq(sqlite3_exec(plain, text, NULL, NULL, NULL), SQLITE_CONSTRAINT);
}

STORE_TEST(plain_sql_is_checked, 60)
{
	static const char *const refused[] = {
		"(due_us) VALUES(1764353000)",
		"(due_us) VALUES(1764353000000)",
		"(due_us) VALUES(1764353000000000000)",
		"(key) VALUES('')",
		"(key) VALUES('x'||char(0)||'y')",
		"(key) VALUES('a')",
		"(key) SELECT hex(zeroblob(128))",
		"(data) VALUES(5)",
		"(interval_us) VALUES(0)",
		"(id) VALUES(0)",
	};
	char text[128];

	sql("INSERT INTO timerhub_tasks(due_us,key) VALUES(1764353000000000,'a')");
	for (unsigned i = 0; i < COUNT_OF(refused); i++) {
		(void)snprintf(text, sizeof(text), "INSERT INTO timerhub_tasks%s", refused[i]);
		sql_refused(text);
	}
	sql("DELETE FROM timerhub_tasks");
	sql_refused("INSERT INTO timerhub_tasks(id) VALUES(1)");
	sql("INSERT INTO timerhub_tasks(key) VALUES('b')");
	expect_eq(sql_number("SELECT id FROM timerhub_tasks"), 2);
	sql_refused("UPDATE timerhub_tasks SET id=9");
	sql_refused("UPDATE timerhub_tasks SET rowid=9");
	sql_refused("INSERT OR REPLACE INTO timerhub_tasks(id) VALUES(2)");
	sql("INSERT OR REPLACE INTO timerhub_tasks(key) VALUES('b')");
	expect_eq(sql_number("SELECT id FROM timerhub_tasks"), 3);
}

STORE_TEST(plain_sql_takes_a_task_from_its_worker, 60)
{
	struct timerhub_store_task task;

	sql("INSERT INTO timerhub_tasks(due_us,key,data) VALUES(1764353000000000,'a','h\303\251')");
	task = take_one();
	expect_eq(task.data_len, 3);
	expect_eq(strcmp(task.data, "h\303\251"), 0);
	sql("UPDATE timerhub_tasks SET data=x'00'");
	expect_eq(timerhub_store_done(store, &task), -ESTALE);
	task = take_one();
	expect_eq(task.attempts, 2);
	sql("INSERT INTO timerhub_tasks(due_us,key,data) VALUES(1764353000000001,'a','z')"
	    " ON CONFLICT(queue,key) DO UPDATE SET due_us=excluded.due_us,data=excluded.data");
	expect_eq(timerhub_store_touch(store, &task, 0), -ESTALE);
	expect_eq(timerhub_store_done(store, &task), -ESTALE);
	task = take_one();
	expect_eq(timerhub_store_park(store, &task, 3), 0);
	sql("UPDATE timerhub_tasks SET data=data");
	expect_eq(sql_number("SELECT count(*) FROM timerhub_list WHERE state='parked'"), 1);
	sql("UPDATE timerhub_tasks SET due_us=due_us"); /* as a move: it waits again */
	task = take_one();
	expect_eq(task.attempts, 1);
	sql("DELETE FROM timerhub_tasks");
	expect_eq(timerhub_store_done(store, &task), -ENOENT);
}

STORE_TEST(take_does_not_write_long_data_again, 60)
{
	static char data[200000];
	struct timerhub_store_put put = { .size = sizeof(put),
		                          .data = data,
		                          .data_len = sizeof(data) };
	struct timerhub_store_task task;
	sqlite3_stmt *statement;

	(void)memset(data, 'd', sizeof(data));
	expect_eq(timerhub_store_put(store, &put, NULL), 0);
	for (int i = 0; i < 3; i++) {
		while (sql_number("PRAGMA wal_checkpoint(RESTART)") != 0)
			sleep_ns(MS); /* the store's own thread was checkpointing */
		task = take_one();
		/* how many pages the WAL has */
		expect_eq(sqlite3_prepare_v2(plain, "PRAGMA wal_checkpoint(PASSIVE)", -1,
		                             &statement, NULL),
		          SQLITE_OK);
		expect_eq(sqlite3_step(statement), SQLITE_ROW);
		expect_le(sqlite3_column_int(statement, 1), 8);
		(void)sqlite3_finalize(statement);
		expect_eq(timerhub_store_retry(store, &task, 0), 0);
	}
}

STORE_TEST(child_is_told_and_harms_nothing, 60)
{
	struct timerhub_store_put put = { .size = sizeof(put) };
	struct timerhub_store_change change = put_of(NULL);
	struct timerhub_store_task task = { .id = 1 };
	struct timerhub_store_completion completion;
	struct timerhub_store_stats stats = { 0 };
	pid_t child;

	child = fork();
	if (child == 0) {
		expect_eq(timerhub_store_put(store, &put, NULL), -EOWNERDEAD);
		expect_eq(timerhub_store_take(store, &task, 1, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_cancel(store, 1), -EOWNERDEAD);
		expect_eq(timerhub_store_cancel_key(store, "k"), -EOWNERDEAD);
		expect_eq(timerhub_store_move(store, 1, 0, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_move_key(store, "k", 0, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_done(store, &task), -EOWNERDEAD);
		expect_eq(timerhub_store_retry(store, &task, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_park(store, &task, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_touch(store, &task, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_commit(store, &change, 1), -EOWNERDEAD);
		expect_eq(timerhub_store_commit_in(store, plain, &change, 1), -EOWNERDEAD);
		expect_eq(timerhub_store_submit(store, &change, 1, 0), -EOWNERDEAD);
		expect_eq(timerhub_store_completions(store, &completion, 1), -EOWNERDEAD);
		expect_eq(timerhub_store_fd(store), -EOWNERDEAD);
		expect_eq(timerhub_store_completion_fd(store), -EOWNERDEAD);
		expect_eq(timerhub_store_sync(store), -EOWNERDEAD);
		expect_eq(timerhub_store_stats(store, &stats), -EOWNERDEAD);
		timerhub_store_stop(store);
		timerhub_store_close(store);
		_exit(0);
	}
	child_ends_well(child);
	(void)put_in(0, NULL, "x");
	task = take_one();
	done(&task);
}

STORE_TEST(closed_store_wakes_no_epoll_that_a_child_has, 60)
{
	struct timerhub_store_change change = put_of(NULL);
	int epoll_fd = epoll_create1(0), fd = timerhub_store_completion_fd(store);
	struct epoll_event event = { .events = EPOLLIN };
	pid_t child;

	expect_eq(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timerhub_store_fd(store), &event), 0);
	expect_eq(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
	expect_eq(timerhub_store_submit(store, &change, 1, 0), 0);
	expect(fd_readable_within(fd, ARRIVES));
	child = fork();
	if (child == 0)
		_exit(pause());
	timerhub_store_close(store);
	store = fixture_open(NULL);
	(void)put_in(0, NULL, "x"); /* another store in the same files */
	expect_eq(epoll_wait(epoll_fd, &event, 1, 0), 0);
	expect_eq(kill(child, SIGKILL), 0);
}

STORE_TEST(descriptors_close_on_exec_and_are_no_standard_ones, 60)
{
	struct stat status;

	timerhub_store_close(store);
	(void)close(0);
	store = fixture_open(NULL);
	expect(fstat(0, &status) < 0);
	for (int fd = 3; fd < 100; fd++) {
		char path[32], name[128] = "";

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "/store-"))
			expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	expect(fcntl(timerhub_store_fd(store), F_GETFD) & FD_CLOEXEC);
	expect(fcntl(timerhub_store_completion_fd(store), F_GETFD) & FD_CLOEXEC);
}

/* Stores the thread's id, and then the result of a take that waits for ever. */
static void *take_until_the_end(void *result)
{
	struct timerhub_store_task task;

	atomic_store((atomic_int *)result, gettid());
	atomic_store((atomic_int *)result, timerhub_store_take(store, &task, 1, UINT64_MAX));
	return NULL;
}

STORE_TEST_LOOP(removed_file_ends_the_handle, 60, 6)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	struct timerhub_store_put put = { .size = sizeof(put) };
	struct timerhub_store_stats stats = { 0 };
	char path[128], moved[136];
	pthread_t taker;
	atomic_int result = 0;

	(void)put_in(HOUR, NULL, "x");
	if (_i < 3) {
		thread_start(&taker, take_until_the_end, &result);
		sleep_ns(20 * MS); /* it may rest by then, or find the file gone by itself */
	}
	(void)snprintf(path, sizeof(path), "%s%s", database, suffixes[_i % 3]);
	(void)snprintf(moved, sizeof(moved), "%s-moved", path);
	expect_eq(_i % 3 == 0 ? rename(path, moved) : unlink(path), 0);
	if (_i < 3) {
		thread_join(taker);
		expect_eq(result, -EIO);
	}
	expect_eq(timerhub_store_stats(store, &stats), 0);
	expect_eq(stats.failed, -EIO);
	expect_eq(timerhub_store_put(store, &put, NULL), -EIO);
	expect_eq(timerhub_store_take(store, &(struct timerhub_store_task){ 0 }, 1, 0), -EIO);
	expect_eq(timerhub_store_cancel(store, 1), -EIO);
}

STORE_TEST_LOOP(stop_or_close_ends_takers, 60, 2)
{
	pthread_t takers[3];
	atomic_int results[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		thread_start(&takers[i], take_until_the_end, &results[i]);
		thread_begins_and_blocks(&results[i]); /* a take may not begin after the close */
	}
	if (_i == 0)
		timerhub_store_stop(store);
	else
		timerhub_store_close(store);
	for (int i = 0; i < 3; i++) {
		thread_join(takers[i]);
		expect_eq(results[i], -ESHUTDOWN);
	}
	if (_i == 1)
		store = fixture_open(NULL);
}

STORE_TEST(stop_hands_out_what_is_due, 60)
{
	struct timerhub_store_task task;
	uint64_t later;

	(void)put_in(0, NULL, "x");
	later = put_in(HOUR, NULL, "x");
	timerhub_store_stop(store);
	task = take_one();
	sleep_ns(MS); /* so that the store's clock, in microseconds, has moved on since the stop */
	expect_eq(timerhub_store_move(store, later, wall_ns(), TIMERHUB_ABSOLUTE), 0);
	expect_eq(timerhub_store_take(store, &(struct timerhub_store_task){ 0 }, 1, UINT64_MAX),
	          -ESHUTDOWN);
	done(&task); /* changes go on */
}

STORE_TEST(close_makes_what_was_submitted, 60)
{
	struct timerhub_store_change change = put_of(NULL);

	for (unsigned i = 0; i < 100; i++)
		expect_eq(timerhub_store_submit(store, &change, 1, i), 0);
	timerhub_store_close(store);
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 100);
	store = fixture_open(NULL);
}

STORE_TEST(fd_is_readable_when_something_is_due, 60)
{
	struct timerhub_store_task task;
	int fd;

	fd = timerhub_store_fd(store);
	expect(fd_readable(fd)); /* nobody has looked yet */
	(void)put_in(HOUR, NULL, "x");
	take_none();
	while (fd_readable(fd))
		take_none(); /* the store's own thread may have checkpointed */
	(void)put_in(80 * MS, NULL, "x");
	while (timerhub_store_take(store, &task, 1, 0) == 0)
		expect(fd_readable_within(fd, ARRIVES));
	done(&task);
	take_none();
	sql("INSERT INTO timerhub_tasks(due_us) VALUES(1764353000000000)");
	expect(fd_readable_within(fd, ARRIVES));
	expect_eq(timerhub_store_take(store, &task, 1, SEC), 1);
	expect(fd_readable(fd)); /* perhaps there is more */
	timerhub_store_release(store, &task);
}

STORE_TEST(statistics_stop_counting, 60)
{
	struct timerhub_store_stats stats = { 0 };

	sql("INSERT INTO timerhub_tasks(due_us) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
	    " SELECT i+1 FROM n LIMIT 100001) SELECT 9000000000000000 FROM n");
	expect_eq(timerhub_store_stats(store, &stats), 0);
	expect_eq(stats.waiting, 100000);
}

STORE_TEST(statistics_count_and_name_the_reader, 120)
{
	struct timerhub_store_stats stats = { 0 };
	struct timerhub_store_task task;
	uint64_t due_ns;

	(void)put_in(HOUR, NULL, "x");
	(void)put_in(TIMERHUB_NEVER, NULL, "x");
	(void)put_in(0, NULL, "x");
	(void)put_in(0, NULL, "x");
	task = take_one();
	expect_eq(timerhub_store_park(store, &task, 1), 0);
	task = take_one();
	expect_eq(timerhub_store_stats(store, &stats), 0);
	expect_eq(stats.size, sizeof(stats));
	expect_eq(stats.waiting, 2);
	expect_eq(stats.taken, 1);
	expect_eq(stats.parked, 1);
	due_ns = (uint64_t)sql_number("SELECT due_us FROM timerhub_list WHERE state='waiting'"
	                              " AND due_us NOT NULL") *
	         1000;
	expect_eq(stats.oldest_due_ns, due_ns);
	expect_eq(stats.put, 4);
	expect_eq(stats.delivered, 2);
	expect_eq(stats.retried, 1);
	expect_cmp(stats.syncs, >, 0);
	expect_cmp(stats.wal_bytes, >, 0);
	expect_eq(stats.failed, 0);
	expect_eq(stats.reader_pid, 0);
	timerhub_store_release(store, &task);
	/* a read transaction that stays open, while more is written than one checkpoint copies */
	sql("BEGIN");
	(void)sql_number("SELECT count(*) FROM timerhub_tasks");
	for (int i = 0; i < 200 && stats.reader_pid == 0; i++) {
		for (int k = 0; k < 20; k++)
			(void)put_in(HOUR, NULL, "x");
		expect_eq(timerhub_store_stats(store, &stats), 0);
	}
	expect_eq(stats.reader_pid, getpid());
	sql("COMMIT");
}

/* ---- memory ---- */

static sqlite3_mem_methods memory;
static _Thread_local int refuse_in; /* allocations of SQLite until the last that is refused */
static _Thread_local bool has_refused;
static int refuse_count; /* how many are refused in a row */

static bool is_refused(void)
{
	bool refused = refuse_in > 0 && --refuse_in < refuse_count;

	has_refused |= refused;
	return refused;
}

static void *refusing_malloc(int bytes)
{
	return is_refused() ? NULL : memory.xMalloc(bytes);
}

static void *refusing_realloc(void *old, int bytes)
{
	return is_refused() ? NULL : memory.xRealloc(old, bytes);
}

static int result_of_refused(int result)
{
	refuse_in = 0;
	expect(result >= 0 || result == -ENOMEM);
	return result;
}

/*
 * One to three allocations of SQLite in a row are refused in each call of a new handle. A call that
 * fails has changed nothing: a task that a take has not handed out comes with the next one, and
 * none comes twice.
 */
TEST_LOOP(refused_memory_changes_nothing, 120, 3)
{
	enum { TASKS = 4 };
	struct timerhub_store_task tasks[TASKS];
	struct timerhub_store_change puts[2] = { put_of(NULL), put_of(NULL) };
	struct timerhub_store *other;
	sqlite3_mem_methods refusing;
	int got;

	expect_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
	refusing = memory;
	refusing.xMalloc = refusing_malloc;
	refusing.xRealloc = refusing_realloc;
	expect_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &refusing), SQLITE_OK);
	expect_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
	fixture_begin(NULL);
	has_refused = true;
	refuse_count = _i + 1;
	for (int k = refuse_count; has_refused; k += _i == 0 ? 1 : 7) {
		has_refused = false;
		other = fixture_open(NULL);
		for (int i = 0; i < TASKS; i += 2) {
			refuse_in = k;
			if (result_of_refused(timerhub_store_commit(other, puts, 2)) < 0)
				expect_eq(timerhub_store_commit(other, puts, 2), 0);
		}
		expect_context("refused", (uint64_t)k, 0);
		refuse_in = k;
		got = result_of_refused(timerhub_store_take(other, tasks, TASKS, 0));
		got = got < 0 ? 0 : got;
		if (got < TASKS)
			expect_eq(timerhub_store_take(store, tasks + got, TASKS, 0), TASKS - got);
		take_none();
		for (int i = 0; i < TASKS; i++) {
			refuse_in = k;
			if (result_of_refused(timerhub_store_done(other, &tasks[i])) < 0)
				expect_eq(timerhub_store_done(other, &tasks[i]), 0);
		}
		timerhub_store_close(other);
	}
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 0);
	expect_eq(strcmp(sql_text("PRAGMA integrity_check"), "ok"), 0);
	fixture_end();
}
