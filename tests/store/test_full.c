/* SPDX-License-Identifier: MIT */
/*
 * A full disk, and a dead one. The disk is the test's: it replaces the calls by which SQLite and
 * the library write, sync and ask for room. Zeros that are written beforehand are room that stays.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"
#include <harness.h>
#include <process_usage.h>

static atomic_bool is_full, is_dead, is_folder_synced;
static atomic_ulong free_bytes = UINT32_MAX;

static void (*on_sync)(void);

int fdatasync(int fd)
{
	struct stat file;

	if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode))
		is_folder_synced = true;
	if (on_sync)
		on_sync();
	if (is_dead) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	return fdatasync(fd);
}

int fstatvfs(int fd, struct statvfs *disk)
{
	(void)fd;
	*disk = (struct statvfs){ .f_frsize = 1, .f_bavail = is_full ? 0 : free_bytes };
	return 0;
}

/* A write within the file has its blocks already. */
static bool is_refused(int fd, size_t bytes, off_t at)
{
	struct stat now;

	return is_full && fstat(fd, &now) == 0 && at + (off_t)bytes > now.st_size;
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
	if (is_dead || is_refused(fd, bytes, at)) {
		errno = is_dead ? EIO : ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, bytes, at);
}

static int put(void)
{
	struct timerhub_store_put put = {
		.size = sizeof(put), .when_ns = HOUR, .data = "some data", .data_len = 9
	};

	return timerhub_store_put(store, &put, NULL);
}

/* Writes pages that the database has in one transaction of another connection. */
static void fill_the_wal(int bytes)
{
	sqlite3 *db = sql_open();
	char text[96];

	(void)snprintf(text, sizeof(text),
	               "PRAGMA wal_autocheckpoint=0; UPDATE filler SET x=randomblob(%d)", bytes);
	sql_on(db, text);
	expect_eq(sqlite3_close(db), SQLITE_OK);
}

static void put_many(int count)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
	               "INSERT INTO timerhub_tasks(due_us,data) WITH RECURSIVE n(i) AS (SELECT 1"
	               " UNION ALL SELECT i+1 FROM n LIMIT %d) SELECT 1764353000000000,"
	               "'data of a task that must end' FROM n",
	               count);
	sql(text);
}

static void begin_with_page_size(int bytes)
{
	char text[32];

	fixture_name();
	plain = sql_open();
	(void)snprintf(text, sizeof(text), "PRAGMA page_size=%d;", bytes);
	sql(text);
	expect_eq(timerhub_store_install(plain), 0);
	expect_eq(sqlite3_close(plain), SQLITE_OK);
	fixture_begin(NULL);
}

static int64_t wal_bytes(void)
{
	char path[128];
	struct stat file;

	(void)snprintf(path, sizeof(path), "%s-wal", database);
	expect_eq(stat(path, &file), 0);
	return file.st_size;
}

TEST_LOOP(thousand_tasks_end_on_a_disk_without_room, 120, 3)
{
	struct timerhub_store_task tasks[1000];
	struct timerhub_store_stats stats = { 0 };
	uint64_t cancelled;
	bool has_grown = false;
	int got = 0, all = 1000;

	begin_with_page_size(_i == 1 ? 1024 : 4096);
	sql("CREATE TABLE filler(x); INSERT INTO filler VALUES(zeroblob(3900000))");
	cancelled = put_in(HOUR, "to cancel", NULL);
	put_many(all);
	while (got < all) {
		int n = timerhub_store_take(store, tasks + got, (unsigned)(all - got), ARRIVES);

		expect_lt(0, n);
		got += n;
	}
	if (_i > 0) {
		sql("BEGIN"); /* a reader, who keeps the WAL from beginning anew */
		(void)sql_number("SELECT count(*) FROM timerhub_tasks");
		fill_the_wal(_i == 1 ? 3900000 : 24000000); /* so much may be in use */
		/*
		 * The store now writes more zeros to the WAL's end in advance. A call that begins
		 * after the file has grown returns when all of these zeros are written.
		 */
		has_grown = _i == 1;
		for (int64_t used = wal_bytes(); !has_grown;) {
			has_grown = wal_bytes() >= used + (14 << 20);
			expect_eq(timerhub_store_touch(store, &tasks[0], HOUR), 0);
			sleep_ns(10 * MS);
		}
	}
	is_full = true;
	expect_eq(put(), -ENOSPC);
	for (int i = 0; i < all; i++) {
		int result = i % 3 == 0   ? timerhub_store_retry(store, &tasks[i], HOUR)
		             : i % 3 == 1 ? timerhub_store_park(store, &tasks[i], 1)
		                          : timerhub_store_done(store, &tasks[i]);

		expect_context("end", (uint64_t)i, 0);
		expect_eq(result, 0);
	}
	expect_eq(timerhub_store_cancel(store, cancelled), 0);
	expect_eq(put(), -ENOSPC);
	expect_eq(timerhub_store_stats(store, &stats), 0);
	expect_eq(stats.disk_full, 2);
	is_full = false;
	if (_i > 0)
		sql("COMMIT");
	expect_eq(put(), 0);
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 1000 - 333 + 1);
	expect_eq(strcmp(sql_text("PRAGMA integrity_check"), "ok"), 0);
	fixture_end();
}

STORE_TEST(tasks_are_taken_on_a_disk_without_room, 120)
{
	struct timerhub_store_task task;

	for (int i = 0; i < 200; i++)
		(void)put_in(0, NULL, "data of a task that must come");
	is_full = true;
	for (int i = 0; i < 200; i++) {
		task = take_one();
		expect_eq(timerhub_store_touch(store, &task, HOUR), 0);
		expect_eq(timerhub_store_done(store, &task), 0);
	}
	take_none();
	is_full = false;
}

/* On a full disk, every handle must work again when the reader who kept the WAL long has gone. */
STORE_TEST(disk_without_room_that_is_full_fails_no_handle, 120)
{
	struct timerhub_store_task task;
	struct timerhub_store *second;
	uint64_t end_ns;
	int result = 0, ended = 0;

	second = fixture_open(NULL);
	sql("CREATE TABLE filler(x); INSERT INTO filler VALUES(zeroblob(13000000))");
	put_many(2000);
	while (sql_number("PRAGMA wal_checkpoint(RESTART)") != 0)
		sleep_ns(MS); /* the store's own thread was checkpointing */
	sql("BEGIN");
	(void)sql_number("SELECT count(*) FROM filler");
	fill_the_wal(13000000);
	is_full = true;
	while (result == 0 && (result = timerhub_store_take(store, &task, 1, 2 * SEC)) == 1) {
		result = timerhub_store_done(store, &task);
		timerhub_store_release(store, &task);
		ended += result == 0;
	}
	expect(result == -ENOSPC || result == 0); /* the done, or a take that has waited */
	expect_lt(10, ended);
	result = timerhub_store_take(store, &task, 1, 20 * MS);
	expect(result == 0 || result == 1);
	if (result == 1)
		timerhub_store_release(store, &task);
	timerhub_store_stop(second);
	while ((result = timerhub_store_take(second, &task, 1, ARRIVES)) == 1)
		timerhub_store_release(second, &task);
	expect_eq(result, -ESHUTDOWN);
	timerhub_store_close(second);
	sql("COMMIT");
	/* now the WAL can begin anew, although the disk is still full */
	for (end_ns = monotonic_ns() + ARRIVES;;) {
		expect_lt(monotonic_ns(), end_ns);
		result = timerhub_store_take(store, &task, 1, 20 * MS);
		if (result == 1 && timerhub_store_done(store, &task) == 0)
			break;
		expect_le(0, result);
		if (result == 1)
			timerhub_store_release(store, &task);
	}
	is_full = false;
	expect_eq(put(), 0);
	expect_eq(strcmp(sql_text("PRAGMA integrity_check"), "ok"), 0);
}

STORE_TEST(puts_stop_at_the_low_water_mark, 60)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_PUT };
	struct timerhub_store_completion completion;

	free_bytes = (16 << 20) + 1;
	expect_eq(put(), 0);
	free_bytes = (16 << 20) - 1;
	expect_eq(put(), -ENOSPC);
	sql("BEGIN IMMEDIATE");
	expect_eq(timerhub_store_commit_in(store, plain, &change, 1), -ENOSPC);
	sql("INSERT INTO timerhub_tasks(due_us) VALUES(NULL); COMMIT"); /* plain SQL goes on */
	expect_eq(timerhub_store_submit(store, &change, 1, 1), 0);
	while (timerhub_store_completions(store, &completion, 1) == 0)
		sleep_ns(MS);
	expect_eq(completion.result, -ENOSPC);
}

TEST(dead_disk_ends_changes_and_takes, 60)
{
	const struct timerhub_store_config config = { .size = sizeof(config), .lease_ns = 20 * MS };
	struct timerhub_store_task task;
	struct timerhub_store_stats stats = { 0 };

	fixture_begin(&config);
	(void)put_in(0, NULL, "x");
	task = take_one();
	is_dead = true;
	expect_eq(timerhub_store_done(store, &task), -EIO);
	expect(task.data != NULL);
	timerhub_store_release(store, &task);
	is_dead = false; /* a later success proves nothing */
	expect_eq(put(), -EIO);
	sleep_ns(30 * MS);
	expect_eq(timerhub_store_take(store, &task, 1, ARRIVES), -EIO);
	expect_eq(timerhub_store_sync(store), -EIO);
	expect_eq(timerhub_store_stats(store, &stats), 0);
	expect_eq(stats.failed, -EIO);
	timerhub_store_close(store);
	store = fixture_open(NULL);
	expect_eq(put(), 0);
	is_dead = true;
	expect_eq(timerhub_store_sync(store), -EIO); /* which alone ends the handle */
	is_dead = false;
	expect_eq(put(), -EIO);
	fixture_end();
}

/* Otherwise a loss of power could remove the name of a WAL that has synced changes. */
STORE_TEST(open_syncs_the_folder_of_a_new_wal, 60)
{
	timerhub_store_close(store);
	expect_eq(sqlite3_close(plain), SQLITE_OK); /* which removes the WAL */
	is_folder_synced = false;
	store = fixture_open(NULL);
	expect(is_folder_synced);
	plain = sql_open();
}

/* ---- what the store's thread does first ---- */

#define MANY_PUTS 60

static bool has_more, is_held_up;

/*
 * While the store's thread syncs MANY_PUTS, which make the WAL long enough for a checkpoint, one
 * more put is submitted. The next sync must be that of this put, and not that of a checkpoint.
 */
static void submit_one_more(void)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_PUT, .when_ns = HOUR };

	int64_t puts = sql_number("SELECT count(*) FROM timerhub_tasks");

	if (puts > MANY_PUTS)
		on_sync = NULL;
	if (puts != MANY_PUTS)
		return;
	is_held_up |= has_more;
	if (!has_more)
		expect_eq(timerhub_store_submit(store, &change, 1, 2), 0);
	has_more = true;
}

STORE_TEST(submits_go_before_checkpoints, 60)
{
	static char data[20000];
	static struct timerhub_store_change changes[MANY_PUTS];
	struct timerhub_store_completion completion;
	int fd = timerhub_store_completion_fd(store);

	for (unsigned i = 0; i < MANY_PUTS; i++)
		changes[i] = (struct timerhub_store_change){ .op = TIMERHUB_STORE_PUT,
			                                     .data = data,
			                                     .data_len = sizeof(data),
			                                     .when_ns = HOUR };
	on_sync = submit_one_more;
	expect_eq(timerhub_store_submit(store, changes, MANY_PUTS, 1), 0);
	for (unsigned tag = 1; tag <= 2; tag++) {
		while (timerhub_store_completions(store, &completion, 1) == 0)
			expect(fd_readable_within(fd, ARRIVES));
		expect_eq(completion.tag, tag);
		expect_eq(completion.result, 0);
	}
	expect(!is_held_up);
}
