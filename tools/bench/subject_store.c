/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub's store: any number of threads put, take and finish tasks, and each call
 * returns when its change is on disk. "sqlite" is what a program would write itself: one thread
 * inserts the same rows into the same tables, and commits as many together as the others have
 * threads.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <timerhub_store.h>

#include "base/clock.h"
#include "workload.h"

#define PATH_BYTES 600

static const char order[DURABLE_BYTES] = "an order";
static struct timerhub_store *store;

static const char *store_path(void)
{
	static char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/tasks.db", bench_folder);
	return path;
}

static void store_open(const struct subject_setup *setup)
{
	(void)setup;
	subject_must(timerhub_store_open(&store, store_path(), NULL));
}

static int store_arm(uint32_t timer, uint64_t delay_ns)
{
	struct timerhub_store_put put = {
		.size = sizeof(put),
		.when_ns = delay_ns,
		.data = order,
		.data_len = sizeof(order),
	};

	(void)timer;
	return timerhub_store_put(store, &put, NULL);
}

static int store_finish(void)
{
	struct timerhub_store_task task;
	int result = timerhub_store_take(store, &task, 1, UINT64_MAX);

	return result < 0 ? result : timerhub_store_done(store, &task);
}

SUBJECT(store, "store", DURABLE | FINISHES | CROSS, .open = store_open, .arm = store_arm,
        .finish = store_finish)

/* ---- sqlite ---- */

static sqlite3 *db;
static sqlite3_stmt *begin, *insert, *commit;
static unsigned together, inserted;

static void must(int result)
{
	if (result != SQLITE_OK)
		subject_fail(sqlite3_errmsg(db), 0);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *statement = NULL;

	must(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
	return statement;
}

static void run(sqlite3_stmt *statement)
{
	(void)sqlite3_step(statement);
	must(sqlite3_reset(statement)); /* says whether the step has failed */
}

static void sqlite_open(const struct subject_setup *setup)
{
	together = setup->threads;
	must(sqlite3_open(store_path(), &db));
	must(sqlite3_exec(db, "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL", NULL, NULL, NULL));
	subject_must(timerhub_store_install(db));
	begin = prepare("BEGIN IMMEDIATE");
	insert = prepare("INSERT INTO timerhub_tasks(due_us,data) VALUES(?1,?2)");
	commit = prepare("COMMIT");
}

/*
 * Puts a task, and commits when `together` tasks were put. Tasks that are not committed at the end
 * of the measurement are lost.
 */
static int sqlite_arm(uint32_t timer, uint64_t delay_ns)
{
	uint64_t due_ns = clock_read_ns(CLOCK_REALTIME) + delay_ns;

	(void)timer;
	if (inserted == 0)
		run(begin);
	must(sqlite3_bind_int64(insert, 1, (sqlite3_int64)(due_ns / NS_PER_US)));
	must(sqlite3_bind_blob(insert, 2, order, sizeof(order), SQLITE_STATIC));
	run(insert);
	inserted = (inserted + 1) % together;
	if (inserted == 0)
		run(commit);
	return 0;
}

SUBJECT(sqlite, "sqlite", DURABLE | ALONE, .open = sqlite_open, .arm = sqlite_arm)
