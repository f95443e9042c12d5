/* SPDX-License-Identifier: MIT */
/* Several processes with one database: they take turns, and one that stops holds no other up. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include <harness.h>
#include <process_usage.h>

#define WRITERS 4
#define ROUNDS_OF_TURNS 40

struct count {
	uint64_t puts, checkpoints;
};

static int put(uint64_t delay_ns)
{
	struct timerhub_store_put put = { .size = sizeof(put), .when_ns = delay_ns };

	return timerhub_store_put(store, &put, NULL);
}

/* Children are forked before the database is opened, and wait for a byte. */
static pid_t child_start(int orders, int counts, void (*run)(int counts))
{
	pid_t child = fork();
	char order;

	if (child > 0)
		return child;
	expect_eq(read(orders, &order, 1), 1);
	store = fixture_open(NULL);
	run(counts);
	timerhub_store_close(store);
	_exit(0);
}

static void put_for_a_second(int counts)
{
	uint64_t end_ns = monotonic_ns() + SEC;
	struct timerhub_store_stats stats = { 0 };
	struct count count = { 0 };

	while (monotonic_ns() < end_ns) {
		expect_eq(put(HOUR), 0);
		count.puts++;
	}
	expect_eq(timerhub_store_stats(store, &stats), 0);
	count.checkpoints = stats.checkpoints;
	expect_eq(write(counts, &count, sizeof(count)), sizeof(count));
}

TEST(writers_at_once_lose_nothing, 60)
{
	uint64_t all = 0;
	int orders[2], counts[2];
	pid_t children[WRITERS];
	struct count count;

	fixture_name();
	expect_eq(pipe(orders), 0);
	expect_eq(pipe(counts), 0);
	for (int i = 0; i < WRITERS; i++)
		children[i] = child_start(orders[0], counts[1], put_for_a_second);
	fixture_begin(NULL);
	expect_eq(write(orders[1], "xxxx", WRITERS), WRITERS);
	for (int i = 0; i < WRITERS; i++) {
		int status;

		expect_eq(waitpid(children[i], &status, 0), children[i]);
		expect_eq(status, 0);
		expect_eq(read(counts[0], &count, sizeof(count)), sizeof(count));
		all += count.puts;
		/*
		 * a put writes a few pages, and a checkpoint comes after 250, or a tenth of a
		 * second
		 */
		expect_le(count.checkpoints, 50 + count.puts * WRITERS / 10);
	}
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), all);
	fixture_end();
}

static void put_as_told(int parent)
{
	struct timerhub_store_put one = { .size = sizeof(one), .when_ns = HOUR };
	uint64_t id;
	char order;

	while (read(parent, &order, 1) == 1) {
		expect_eq(timerhub_store_put(store, &one, &id), 0);
		expect_eq(write(parent, &id, sizeof(id)), sizeof(id));
	}
}

static void turn_is_taken(int wal)
{
	struct flock lock = { .l_type = F_UNLCK };

	while (lock.l_type == F_UNLCK) {
		lock = (struct flock){ .l_type = F_WRLCK };
		expect_eq(fcntl(wal, F_OFD_GETLK, &lock), 0);
	}
}

/* Of two processes that wait to write, the one that has asked first must write first. */
TEST(writers_take_turns, 60)
{
	char path[sizeof(database) + 4];
	pid_t children[2];
	int pairs[2][2], wal, passed = 0;

	fixture_name();
	for (int i = 0; i < 2; i++) {
		expect_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		children[i] = child_start(pairs[i][1], pairs[i][1], put_as_told);
	}
	fixture_begin(NULL);
	(void)snprintf(path, sizeof(path), "%s-wal", database);
	expect_le(0, wal = open(path, O_RDWR | O_CLOEXEC));
	expect_eq(write(pairs[0][0], "x", 1) + write(pairs[1][0], "x", 1), 2);
	for (unsigned round = 0; round < ROUNDS_OF_TURNS; round++) {
		uint64_t ids[2], begin_ns;

		sql("BEGIN IMMEDIATE");
		begin_ns = monotonic_ns();
		for (int i = 0; i < 2; i++) {
			expect_eq(write(pairs[i][0], "x", 1), 1);
			turn_is_taken(wal);
			sleep_ns(3 * MS);
		}
		sql("COMMIT");
		for (int i = 0; i < 2; i++)
			expect_eq(read(pairs[i][0], &ids[i], sizeof(ids[i])), sizeof(ids[i]));
		/* after 2.5 s a writer no longer waits for its turn */
		passed += ids[0] > ids[1] && monotonic_ns() - begin_ns < 2 * SEC;
	}
	for (int i = 0; i < 2; i++) {
		expect_eq(kill(children[i], SIGKILL), 0);
		expect_eq(waitpid(children[i], NULL, 0), children[i]);
	}
	/* Some are no fault: turn_is_taken() may have seen the turn of a store's own thread. */
	expect_le(passed, ROUNDS_OF_TURNS / 5);
	expect_eq(close(wal), 0);
	fixture_end();
}

static void put_nothing(int counts)
{
	(void)counts;
}

/* Each open must succeed, although SQLite does not wait for the lock to make a new file a WAL. */
TEST(new_file_is_opened_by_several_processes_at_once, 120)
{
	for (int round = 0; round < 15; round++) {
		pid_t children[WRITERS * 2];
		int orders[2];

		fixture_name();
		expect_eq(pipe(orders), 0);
		for (int i = 0; i < WRITERS * 2; i++)
			children[i] = child_start(orders[0], -1, put_nothing);
		expect_eq(write(orders[1], "xxxxxxxx", WRITERS * 2), WRITERS * 2);
		for (int i = 0; i < WRITERS * 2; i++) {
			int status;

			expect_eq(waitpid(children[i], &status, 0), children[i]);
			expect_eq(status, 0);
		}
		(void)close(orders[0]);
		(void)close(orders[1]);
		fixture_begin(NULL);
		fixture_end();
	}
}

/* Answers each byte with SQLITE_OK, or SQLITE_BUSY if another process has the write lock. */
static void tell_who_writes(int orders, int answers)
{
	char order;

	while (read(orders, &order, 1) == 1) {
		sqlite3 *db;
		int result;

		expect_eq(sqlite3_open(database, &db), SQLITE_OK);
		result = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
		expect_eq(sqlite3_close(db), SQLITE_OK);
		expect_eq(write(answers, &result, sizeof(result)), sizeof(result));
	}
	_exit(0);
}

/* Closing any descriptor of the database or the -shm would drop all of SQLite's locks on it. */
TEST(handle_that_is_closed_leaves_the_programs_locks, 60)
{
	int orders[2], answers[2], result = SQLITE_OK;
	pid_t child;

	fixture_name();
	expect_eq(pipe(orders), 0);
	expect_eq(pipe(answers), 0);
	child = fork();
	if (child == 0) {
		(void)close(orders[1]);
		tell_who_writes(orders[0], answers[1]);
	}
	fixture_begin(NULL);
	sql("BEGIN IMMEDIATE; INSERT INTO timerhub_tasks(due_us) VALUES(NULL)");
	timerhub_store_close(store);
	expect_eq(write(orders[1], "x", 1), 1);
	expect_eq(read(answers[0], &result, sizeof(result)), sizeof(result));
	expect_eq(result, SQLITE_BUSY);
	sql("COMMIT");
	(void)close(orders[1]);
	child_ends_well(child);
	store = fixture_open(NULL);
	fixture_end();
}

static void put_until_killed(int counts)
{
	(void)counts;
	for (;;)
		(void)put(HOUR);
}

TEST(stopped_writer_holds_others_up_for_no_longer_than_their_timeout, 120)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .timeout_ns = 200 * MS };
	int orders[2];
	pid_t child;

	fixture_name();
	expect_eq(pipe(orders), 0);
	child = child_start(orders[0], -1, put_until_killed);
	fixture_begin(&config);
	expect_eq(write(orders[1], "x", 1), 1);
	/* the child is stopped in a transaction, while it has the turn to write, or elsewhere */
	for (unsigned i = 0; i < scaled(20); i++) {
		uint64_t before_ns;
		int result;

		sleep_ns(3 * MS);
		expect_eq(kill(child, SIGSTOP), 0);
		before_ns = monotonic_ns();
		result = put(HOUR);
		expect(result == 0 || result == -EAGAIN);
		expect_lt(monotonic_ns() - before_ns, ARRIVES);
		expect_eq(kill(child, SIGCONT), 0);
	}
	expect_eq(kill(child, SIGKILL), 0);
	expect_eq(waitpid(child, NULL, 0), child);
	expect_eq(put(HOUR), 0);
	fixture_end();
}

/* Its holder is stopped, or dead with a forked child that has inherited the lock. */
TEST(turn_that_nobody_gives_back_is_waited_for_once, 60)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .timeout_ns = 700 * MS };
	char path[sizeof(database) + 4];
	struct flock all = { .l_type = F_WRLCK };
	uint64_t before_ns;

	fixture_begin(&config);
	(void)snprintf(path, sizeof(path), "%s-wal", database);
	expect_eq(fcntl(open(path, O_RDWR | O_CLOEXEC), F_OFD_SETLK, &all), 0);
	expect_eq(put(HOUR), 0);
	before_ns = monotonic_ns();
	for (int i = 0; i < 60; i++)
		expect_eq(put(HOUR), 0);
	expect_lt(monotonic_ns() - before_ns, ARRIVES);
	sql("BEGIN IMMEDIATE");
	before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	expect_eq(put(HOUR), -EAGAIN); /* and meanwhile it sleeps */
	expect_lt(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns, 100 * MS);
	sql("COMMIT");
	fixture_end();
}
