/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <harness.h>

struct timerhub_store *store;
sqlite3 *plain;
char database[96];
static char folder[64];

struct timerhub_store *fixture_open(const struct timerhub_store_config *config)
{
	struct timerhub_store *opened = NULL;

	expect_eq(timerhub_store_open(&opened, database, config), 0);
	return opened;
}

void fixture_name(void)
{
	const char *base = getenv("TMPDIR");

	if (!base || strlen(base) > 30)
		base = "/tmp";
	(void)snprintf(folder, sizeof(folder), "%s/store-XXXXXX", base);
	expect(mkdtemp(folder) != NULL);
	(void)snprintf(database, sizeof(database), "%s/t.db", folder);
}

void fixture_begin(const struct timerhub_store_config *config)
{
	if (!*database)
		fixture_name();
	store = fixture_open(config);
	plain = sql_open();
}

void fixture_end(void)
{
	char command[128];

	expect_eq(sqlite3_close(plain), SQLITE_OK);
	timerhub_store_close(store);
	plain = NULL;
	store = NULL;
	database[0] = '\0';
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	expect_eq(system(command), 0);
}

sqlite3 *sql_open(void)
{
	sqlite3 *db = NULL;

	expect_eq(sqlite3_open(database, &db), SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 20000);
	return db;
}

void sql_on(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", text, sqlite3_errmsg(db));
	expect_failed(__FILE__, __LINE__, text);
}

void sql(const char *text)
{
	sql_on(plain, text);
}

const char *sql_text(const char *text)
{
	static char value[256];
	sqlite3_stmt *statement = NULL;

	value[0] = '\0';
	expect_eq(sqlite3_prepare_v2(plain, text, -1, &statement, NULL), SQLITE_OK);
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		(void)snprintf(value, sizeof(value), "%s",
		               (const char *)sqlite3_column_text(statement, 0));
	expect_eq(sqlite3_finalize(statement), SQLITE_OK);
	return value;
}

int64_t sql_number(const char *text)
{
	const char *value = sql_text(text);

	return *value ? strtoll(value, NULL, 10) : -1;
}

uint64_t put_in(uint64_t delay_ns, const char *key, const char *data)
{
	struct timerhub_store_put put = {
		.size = sizeof(put),
		.when_ns = delay_ns,
		.key = key,
		.data = data,
		.data_len = data ? strlen(data) : 0,
	};
	uint64_t id = 0;

	expect_eq(timerhub_store_put(store, &put, &id), 0);
	expect(id != 0);
	return id;
}

struct timerhub_store_task take_one(void)
{
	struct timerhub_store_task task;
	uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);

	expect_eq(timerhub_store_take(store, &task, 1, ARRIVES), 1);
	expect_le(task.due_ns, wall_ns());
	expect_lt(before_ns, task.lease_end_ns); /* a short lease may be over by now */
	return task;
}

void take_none(void)
{
	struct timerhub_store_task task;

	expect_eq(timerhub_store_take(store, &task, 1, 0), 0);
}
