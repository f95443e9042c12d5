/* SPDX-License-Identifier: MIT */
/*
 * A taker that rests in one process notices whatever another commits: each kind of commit, many
 * times, with the pauses at which a wake-up could be lost.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include <harness.h>
#include <process_usage.h>

#define DUE_NOW "CAST((julianday('now')-2440587.5)*86400000000 AS INTEGER)-2000"
#define INSERT "INSERT INTO timerhub_tasks(due_us) VALUES(" DUE_NOW ");"
/* more than a cache of ten pages */
#define FILL                                                                                       \
	"INSERT INTO filler WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT "   \
	"60)"                                                                                      \
	" SELECT i,zeroblob(3000) FROM n;"

static struct dice dice;
static bool disk_is_slow;

/*
 * In place of the C library's, for SQLite too: a commit is visible only after its sync, and the
 * event of its last frame long before.
 */
int fdatasync(int fd)
{
	if (disk_is_slow)
		sleep_ns(10 * MS);
	return (int)syscall(SYS_fdatasync, fd);
}

static void pause_at_most(uint64_t ns)
{
	sleep_ns(dice_below(&dice, ns));
}

/* A writer dies: its pages stay in the WAL, and no inotify event tells that its lock is free. */
static void writer_killed(sqlite3 *db)
{
	pid_t child = fork(); /* this process has no connection now */

	if (child == 0) {
		sql_on(sql_open(), "PRAGMA cache_size=10; BEGIN IMMEDIATE;" FILL);
		(void)raise(SIGKILL);
	}
	(void)waitpid(child, NULL, 0);
	db = sql_open();
	sql_on(db, INSERT);
	(void)sqlite3_close(db);
}

static void attached(sqlite3 *db)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
	               "ATTACH '%s-2' AS two; CREATE TABLE IF NOT EXISTS two.t(x); BEGIN;"
	               "INSERT INTO two.t VALUES(1);" INSERT "COMMIT",
	               database);
	sql_on(db, text);
}

static void open_insert_close(sqlite3 *db)
{
	sqlite3 *own = sql_open();

	(void)db;
	sql_on(own, INSERT);
	expect_eq(sqlite3_close(own), SQLITE_OK);
}

static void beside_old_reader(sqlite3 *db)
{
	sqlite3 *reader = sql_open();

	sql_on(reader, "BEGIN; SELECT count(*) FROM timerhub_tasks");
	sql_on(db, INSERT);
	pause_at_most(5 * MS);
	expect_eq(sqlite3_close(reader), SQLITE_OK);
}

/* SQL of a commit, or of two parts with a pause between them; or a function that commits. */
static const struct kind {
	const char *first, *then;
	uint64_t pause_ns;
	bool is_slow; /* the disk */
	void (*run)(sqlite3 *db);
} kinds[] = {
	{ .first = INSERT },
	{ .first = "PRAGMA synchronous=FULL;" INSERT, .is_slow = true },
	{ .first = "BEGIN IMMEDIATE;" INSERT, .pause_ns = 100 * MS, .then = "COMMIT" },
	/* frames are in the WAL long before the commit */
	{ .first = "PRAGMA cache_size=10; BEGIN IMMEDIATE;" INSERT FILL,
	  .pause_ns = 60 * MS,
	  .then = "COMMIT" },
	{ .first = "PRAGMA cache_size=10; BEGIN IMMEDIATE;" FILL,
	  .pause_ns = 20 * MS,
	  .then = "ROLLBACK;" INSERT },
	{ .first = "PRAGMA wal_checkpoint(TRUNCATE);" INSERT },
	{ .first = INSERT "PRAGMA wal_checkpoint(RESTART)" },
	{ .first = INSERT "VACUUM" },
	{ .first = "INSERT INTO events VALUES(1)" }, /* a trigger puts the task */
	{ .first = "PRAGMA mmap_size=10000000;" INSERT },
	{ .run = writer_killed },
	{ .run = attached },
	{ .run = open_insert_close },
	{ .run = beside_old_reader },
};

static void commit(const struct kind *kind)
{
	sqlite3 *db = kind->run == writer_killed ? NULL : sql_open();

	pause_at_most(3 * MS);
	if (kind->run)
		kind->run(db);
	else
		sql_on(db, kind->first);
	if (kind->then) {
		pause_at_most(kind->pause_ns);
		sql_on(db, kind->then);
	}
	(void)sqlite3_close(db);
}

/* The child commits when it reads a byte; it was forked before the store was opened. */
static void child_runs(int orders, const struct kind *kind)
{
	char order;

	disk_is_slow = kind->is_slow;
	while (read(orders, &order, 1) == 1)
		commit(kind);
	_exit(0);
}

static void notice(int orders, unsigned rounds)
{
	struct timerhub_store_task task;

	for (unsigned i = 0; i < rounds; i++) {
		pause_at_most(2 * MS);
		expect_eq(write(orders, "x", 1), 1);
		expect_context("round, kind", i, 0);
		expect_eq(timerhub_store_take(store, &task, 1, ARRIVES), 1);
		expect_eq(timerhub_store_done(store, &task), 0);
	}
}

static bool inotify_is_refused;

/* In place of the C library's. */
int inotify_init1(int flags)
{
	if (inotify_is_refused) { /* as if another program had taken all of the user's instances */
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_inotify_init1, flags);
}

static void have_no_inotify(void)
{
	struct timerhub_store_stats stats = { 0 };

	timerhub_store_close(store);
	inotify_is_refused = true;
	store = fixture_open(NULL);
	expect_eq(timerhub_store_stats(store, &stats), 0);
	expect_eq(stats.is_polling, 1);
}

static void notice_kind(unsigned kind, unsigned rounds, bool polls)
{
	int orders[2];
	pid_t child;

	dice = dice_new(kind);
	fixture_name();
	expect_eq(pipe(orders), 0);
	child = fork();
	if (child == 0) {
		(void)close(orders[1]);
		child_runs(orders[0], &kinds[kind]);
	}
	(void)close(orders[0]);
	fixture_begin(NULL);
	if (polls)
		have_no_inotify();
	sql("CREATE TABLE filler(x,y); CREATE TABLE events(x);"
	    "CREATE TRIGGER made AFTER INSERT ON events BEGIN " INSERT " END");
	notice(orders[1], rounds);
	(void)close(orders[1]);
	child_ends_well(child);
	fixture_end();
}

TEST_LOOP(commit_of_every_kind_is_noticed, 300, COUNT_OF(kinds))
{
	notice_kind((unsigned)_i, scaled(ROUNDS), false);
}

TEST(commit_is_noticed_without_inotify, 60)
{
	notice_kind(0, scaled(10), true);
}

static void *take_of(void *queue)
{
	struct timerhub_store_task task;

	expect_eq(timerhub_store_take(queue, &task, 1, ARRIVES), 1);
	expect_eq(timerhub_store_done(queue, &task), 0);
	return NULL;
}

/* A commit wakes the takers of all queues. Each must get only a task of its own queue. */
STORE_TEST(queues_of_one_file_notice_their_own_tasks, 60)
{
	const struct timerhub_store_config other = { .size = sizeof(other), .queue = "other" };
	struct timerhub_store *second;
	pthread_t takers[2];

	second = fixture_open(&other);
	thread_start(&takers[0], take_of, store);
	thread_start(&takers[1], take_of, second);
	sleep_ns(30 * MS);
	sql("INSERT INTO timerhub_tasks(queue,due_us) VALUES('other'," DUE_NOW ")");
	thread_join(takers[1]);
	sleep_ns(30 * MS);
	sql(INSERT);
	thread_join(takers[0]);
	timerhub_store_close(second);
}

static void *rest(void *tid)
{
	struct timerhub_store_task task;

	*(atomic_int *)tid = gettid();
	expect_eq(timerhub_store_take(store, &task, 1, UINT64_MAX), -ESHUTDOWN);
	return NULL;
}

/* How often the taker and the store's thread have slept. */
static uint64_t sleeps_of(pid_t taker)
{
	pid_t keeper;

	/* The store's thread gives itself its name, perhaps after the open has returned. */
	while ((keeper = thread_find("timerhub-store")) == 0)
		sleep_ns(MS);
	return thread_status(taker, "voluntary_ctxt_switches:", 10) +
	       thread_status(keeper, "voluntary_ctxt_switches:", 10);
}

STORE_TEST(nobody_wakes_up_while_nothing_is_due, 60)
{
	uint64_t before, end_ns = monotonic_ns() + ARRIVES;
	struct timerhub_store_task task;
	atomic_int tid = 0;
	pthread_t taker;

	(void)put_in(HOUR, NULL, "waits");
	(void)put_in(0, NULL, "has a lease of 30 s");
	task = take_one();
	thread_start(&taker, rest, &tid);
	while (tid == 0)
		sleep_ns(MS);
	do {
		/* the rest of the WAL is checkpointed first, after a tenth of a second */
		expect_lt(monotonic_ns(), end_ns);
		before = sleeps_of(tid);
		sleep_ns(300 * MS);
	} while (sleeps_of(tid) != before);
	timerhub_store_stop(store);
	thread_join(taker);
	timerhub_store_release(store, &task);
}

/* A taker must see the end of a transaction of 400 ms within 50 ms. */
TEST(end_of_a_long_commit_is_noticed, 120)
{
	pthread_t taker;
	uint64_t late_ns;

	disk_is_slow = true;
	fixture_begin(NULL);
	sql("PRAGMA cache_size=10; PRAGMA synchronous=FULL; CREATE TABLE filler(x,y)");
	do {
		thread_start(&taker, take_of, store);
		sql("BEGIN IMMEDIATE;" FILL);
		sleep_ns(400 * MS);
		sql(INSERT "COMMIT");
		late_ns = monotonic_ns();
		thread_join(taker);
		late_ns = monotonic_ns() - late_ns;
	} while (late_ns >= 50 * MS); /* perhaps the machine has stalled */
	fixture_end();
}
