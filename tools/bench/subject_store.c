/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub's store. "store": any number of threads put, take and finish tasks; each call
 * returns when its change is on disk. "store-submit": one thread keeps about a thousand puts in
 * flight, whose ends an eventfd signals; a wait lasts from the submit to the completion. In
 * "store-held" and "store-submit-held" somebody keeps a read transaction open, so that no
 * checkpoint copies a page: what the others' waits are longer is due to checkpoints.
 *
 * "sqlite" is the floor: one thread inserts the same rows into the same tables and commits as many
 * together as the others have threads.
 */
#include "subject_store.h"

#include <errno.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>

#include "clocks.h"
#include "disk_folder.h"
#include "histogram.h"
#include "subject.h"

#define SUBMIT_MAX 1000u
#define SUBMIT_TOGETHER 256u
#define BUSY_MS 10000
#define PATH_BYTES 600

static const char order[DURABLE_BYTES] = "an order";
static struct timerhub_store *store;

const char *store_path(void)
{
	static char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/tasks.db", folder_make());
	return path;
}

struct timerhub_store *store_open(void)
{
	struct timerhub_store *opened;
	int result = timerhub_store_open(&opened, store_path(), NULL);

	if (result < 0)
		subject_fail("timerhub_store_open", -result);
	return opened;
}

static void subject_open(const struct subject_setup *setup)
{
	(void)setup;
	(void)folder_is_memory();
	store = store_open();
}

static void subject_close(void)
{
	timerhub_store_close(store);
}

static int subject_arm(uint32_t timer, uint64_t delay_ns)
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

static int subject_finish(void)
{
	struct timerhub_store_task task;
	int result = timerhub_store_take(store, &task, 1, UINT64_MAX);

	return result < 0 ? result : timerhub_store_done(store, &task);
}

static void subject_counts(struct subject_counts *ret_counts)
{
	struct timerhub_store_stats stats = { .size = sizeof(stats) };

	subject_must(timerhub_store_stats(store, &stats));
	*ret_counts = (struct subject_counts){ .syncs = stats.syncs };
}

SUBJECT(store, "store", "put, take, done, each call until it is on disk",
        CAN_PUT_DURABLY | CAN_FINISH_DURABLY | CAN_SHARE_FILE | CAN_KEEP_MANY | CAN_ANY_THREAD |
                CAN_CROSS,
        .open = subject_open, .close = subject_close, .arm = subject_arm, .finish = subject_finish,
        .counts = subject_counts)

/* ---- with a reader that holds checkpoints back ---- */

static void must(sqlite3 *db, int result)
{
	if (result != SQLITE_OK)
		subject_fail(sqlite3_errmsg(db), 0);
}

static void held_open(const struct subject_setup *setup)
{
	sqlite3 *reader;

	subject_open(setup);
	must(NULL, sqlite3_open(store_path(), &reader));
	must(reader,
	     sqlite3_exec(reader, "BEGIN;SELECT version FROM timerhub_about", NULL, NULL, NULL));
}

SUBJECT(store_held, "store-held", "store without checkpoints, because a reader holds them back",
        CAN_PUT_DURABLY | CAN_ANY_THREAD | CAN_CROSS, .open = held_open, .close = subject_close,
        .arm = subject_arm, .counts = subject_counts)

/* ---- store-submit ---- */

static unsigned in_flight;
static struct histogram submit_waits;

/* Wait until at most `most` puts are in flight. */
static int submit_await(unsigned most)
{
	struct pollfd poll_fd = { .fd = timerhub_store_completion_fd(store), .events = POLLIN };
	struct timerhub_store_completion completions[SUBMIT_TOGETHER];

	while (in_flight > most) {
		int count = timerhub_store_completions(store, completions, SUBMIT_TOGETHER);
		uint64_t now = now_ns();

		if (count < 0)
			return count;
		for (int i = 0; i < count; i++) {
			if (completions[i].result < 0)
				return completions[i].result;
			histogram_add(&submit_waits, now - completions[i].tag);
		}
		in_flight -= (unsigned)count;
		if (count == 0 && poll(&poll_fd, 1, -1) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

static int submit_arm(uint32_t timer, uint64_t delay_ns)
{
	struct timerhub_store_change change = {
		.op = TIMERHUB_STORE_PUT,
		.when_ns = delay_ns,
		.data = order,
		.data_len = sizeof(order),
	};
	int result = timerhub_store_submit(store, &change, 1, now_ns());

	(void)timer;
	if (result < 0)
		return result;
	in_flight++;
	return in_flight < SUBMIT_MAX ? 0 : submit_await(SUBMIT_MAX - SUBMIT_TOGETHER);
}

static int submit_flush(void)
{
	return submit_await(0);
}

#define SUBMIT(identifier, name, how, opens)                                                       \
	SUBJECT(identifier, name, how, CAN_PUT_DURABLY, .alone = true, .waits = &submit_waits,     \
	        .open = opens, .close = subject_close, .arm = submit_arm, .flush = submit_flush,   \
	        .counts = subject_counts)

SUBMIT(store_submit, "store-submit",
       "timerhub_store_submit, 1000 in flight, polled for completions", subject_open)
SUBMIT(store_submit_held, "store-submit-held", "store-submit without checkpoints", held_open)

/* ---- sqlite ---- */

static sqlite3 *db;
static sqlite3_stmt *begin, *insert, *commit;
static unsigned together, inserted;
static uint64_t commits;

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *statement = NULL;

	must(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
	return statement;
}

static void run(sqlite3_stmt *statement)
{
	(void)sqlite3_step(statement);
	must(db, sqlite3_reset(statement));
}

static void sqlite_open(const struct subject_setup *setup)
{
	int result;

	(void)folder_is_memory();
	together = setup->threads > 0 ? setup->threads : 1;
	must(NULL, sqlite3_open(store_path(), &db));
	must(db, sqlite3_busy_timeout(db, BUSY_MS));
	/* SQLite does not wait for another process that is just changing the mode */
	while ((result = sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL)) ==
	       SQLITE_BUSY)
		sleep_until_ns(now_ns() + NS_PER_MS);
	must(db, result);
	must(db, sqlite3_exec(db, "PRAGMA synchronous=FULL", NULL, NULL, NULL));
	subject_must(timerhub_store_install(db));
	begin = prepare("BEGIN IMMEDIATE");
	insert = prepare("INSERT INTO timerhub_tasks(due_us,data) VALUES(?1,?2)");
	commit = prepare("COMMIT");
}

static int sqlite_flush(void)
{
	if (inserted > 0)
		run(commit);
	commits += inserted > 0;
	inserted = 0;
	return 0;
}

static int sqlite_arm(uint32_t timer, uint64_t delay_ns)
{
	uint64_t due_ns = clock_read_ns(CLOCK_REALTIME) + delay_ns;

	(void)timer;
	if (inserted == 0)
		run(begin);
	(void)sqlite3_bind_int64(insert, 1, (sqlite3_int64)(due_ns / NS_PER_US));
	(void)sqlite3_bind_blob(insert, 2, order, sizeof(order), SQLITE_STATIC);
	run(insert);
	return ++inserted < together ? 0 : sqlite_flush();
}

static void sqlite_counts(struct subject_counts *ret_counts)
{
	*ret_counts = (struct subject_counts){ .syncs = commits };
}

SUBJECT(sqlite, "sqlite", "a loop of INSERTs, with a COMMIT for as many as the others have threads",
        CAN_PUT_DURABLY | CAN_SHARE_FILE, .alone = true, .open = sqlite_open, .arm = sqlite_arm,
        .flush = sqlite_flush, .counts = sqlite_counts)
