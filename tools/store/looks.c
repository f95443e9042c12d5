/* SPDX-License-Identifier: MIT */
/*
 * The commands that only read. They open the database read-only by SQLite itself, so they can change
 * nothing, and also work for a user who may not write to the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <metrics/openmetrics.h>
#include <store/schema.h>
#include <when.h>

#include "tool.h"

#define BUSY_MS 5000

/* ---- the connection ---- */

/* Says what SQLite has against the file. */
static enum status complain_of(sqlite3 *db, const char *path)
{
	(void)fprintf(stderr, "timerhub-store: %s: %s\n", path, sqlite3_errmsg(db));
	return sqlite3_errcode(db) == SQLITE_CORRUPT || sqlite3_errcode(db) == SQLITE_NOTADB
	               ? DAMAGED
	               : FAILED;
}

/* Opens a database that has the tables of a store. */
static enum status open_db(const char *path, sqlite3 **ret_db)
{
	sqlite3_stmt *statement = NULL;
	enum status status = GOOD;

	if (access(path, F_OK) < 0)
		return tool_complain(path, -errno);
	if (sqlite3_open_v2(path, ret_db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(*ret_db, BUSY_MS) != SQLITE_OK ||
	    sqlite3_prepare_v2(*ret_db, "SELECT 1 FROM sqlite_schema WHERE name='timerhub_about'",
	                       -1, &statement, NULL) != SQLITE_OK) {
		status = complain_of(*ret_db, path);
	} else if (sqlite3_step(statement) != SQLITE_ROW) {
		(void)fprintf(stderr, "timerhub-store: %s: has no tables of a store\n", path);
		status = FAILED;
	}
	(void)sqlite3_finalize(statement);
	if (status != GOOD)
		(void)sqlite3_close(*ret_db);
	return status;
}

/* Prepares a query and binds its texts, of which NULL stands for any. NULL: it has said why. */
static sqlite3_stmt *query(sqlite3 *db, const char *path, const char *sql, const char *text)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
	    (text && sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC) != SQLITE_OK)) {
		(void)complain_of(db, path);
		(void)sqlite3_finalize(statement);
		return NULL;
	}
	return statement;
}

/* ---- output ---- */

/* Prints text: in JSON with quotes; else with \xHH for what would not be one word. */
static void print_text(const unsigned char *text, bool json)
{
	if (json)
		(void)putchar('"');
	for (; *text; text++)
		if (*text > (json ? 31 : ' ') && (*text < 127 || json) && *text != '\\' &&
		    !(json && *text == '"'))
			(void)putchar(*text);
		else
			(void)printf(json ? "\\u%04x" : "\\x%02x", *text);
	if (json)
		(void)putchar('"');
}

static bool is_time(const char *name)
{
	return strcmp(name, "due_us") == 0 || strcmp(name, "leased_until_us") == 0;
}

/* Prints a column as text, if it says something: its name and its value. */
static void print_column(sqlite3_stmt *row, int column)
{
	const char *name = sqlite3_column_name(row, column);

	if (sqlite3_column_type(row, column) == SQLITE_NULL) {
		if (strcmp(name, "due_us") == 0)
			when_print("due", WHEN_NEVER);
	} else if (is_time(name)) {
		when_print(*name == 'd' ? "due" : "leased_until",
		           (uint64_t)sqlite3_column_int64(row, column) * 1000);
	} else if (strcmp(name, "interval_us") == 0) {
		when_print_delay("interval", (uint64_t)sqlite3_column_int64(row, column) * 1000);
	} else if (strcmp(name, "queue") != 0 || *sqlite3_column_text(row, column)) {
		(void)printf(strcmp(name, "key") == 0     ? " ="
		             : strcmp(name, "state") == 0 ? " "
		                                          : " %s ",
		             name);
		print_text(sqlite3_column_text(row, column), false);
	}
}

static void print_row(sqlite3_stmt *row)
{
	(void)printf("%s", (const char *)sqlite3_column_text(row, 0));
	for (int i = 1; i < sqlite3_column_count(row); i++)
		print_column(row, i);
	(void)printf("\n");
}

static void print_json_row(sqlite3_stmt *row, bool first)
{
	(void)printf(first ? "{" : ",\n {");
	for (int i = 0; i < sqlite3_column_count(row); i++) {
		(void)printf(i > 0 ? ", \"%s\": " : "\"%s\": ", sqlite3_column_name(row, i));
		if (sqlite3_column_type(row, i) == SQLITE_NULL)
			(void)printf("null");
		else if (sqlite3_column_type(row, i) == SQLITE_TEXT)
			print_text(sqlite3_column_text(row, i), true);
		else
			(void)printf("%" PRId64, (int64_t)sqlite3_column_int64(row, i));
	}
	(void)printf("}");
}

/* Prints all rows of a query. */
static enum status print_rows(sqlite3 *db, const char *path, sqlite3_stmt *statement, bool json)
{
	bool first = true;
	int rc;

	if (json)
		(void)printf("[");
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		if (json)
			print_json_row(statement, first);
		else
			print_row(statement);
		first = false;
	}
	if (json)
		(void)printf("]\n");
	return rc == SQLITE_DONE ? GOOD : complain_of(db, path);
}

/* ---- list, show ---- */

enum status tool_list(const struct options *options, char **arguments, int count)
{
	uint64_t limit = INT64_MAX;
	sqlite3_stmt *statement;
	enum status status;
	sqlite3 *db;

	if (count > 1 && (!console_number(arguments[1], &limit) || limit > INT64_MAX))
		return misused("COUNT must be a number, not", arguments[1]);
	status = open_db(arguments[0], &db);
	if (status != GOOD)
		return status;
	statement =
		query(db, arguments[0],
	              "SELECT id, state, due_us, leased_until_us, attempts, interval_us, reason,"
	              " bytes, queue, key FROM timerhub_list"
	              " WHERE ?1 IS NULL OR queue = ?1"
	              " ORDER BY state = 'parked', due_us IS NULL, due_us, id LIMIT ?2",
	              options->queue);
	if (statement) {
		(void)sqlite3_bind_int64(statement, 2, (int64_t)limit);
		status = print_rows(db, arguments[0], statement, options->json);
	} else {
		status = FAILED;
	}
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(db);
	return status;
}

enum status tool_show(const struct options *options, char **arguments, int count)
{
	sqlite3_stmt *statement;
	struct named_task task;
	enum status status;
	sqlite3 *db;
	int rc;

	(void)count;
	if (!tool_read_task(arguments[1], &task))
		return misused("TASK must be the id of a task, or =KEY, not", arguments[1]);
	status = open_db(arguments[0], &db);
	if (status != GOOD)
		return status;
	statement = query(db, arguments[0],
	                  task.key ? "SELECT CAST(data AS BLOB) FROM timerhub_tasks"
	                             " WHERE queue = ?1 AND key = ?2"
	                           : "SELECT CAST(data AS BLOB) FROM timerhub_tasks"
	                             " WHERE queue = ?1 AND id = ?2",
	                  options->queue ? options->queue : "");
	if (!statement) {
		(void)sqlite3_close(db);
		return FAILED;
	}
	if (task.key)
		(void)sqlite3_bind_text(statement, 2, task.key, -1, SQLITE_STATIC);
	else
		(void)sqlite3_bind_int64(statement, 2, (int64_t)task.id);
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW) {
		const void *data = sqlite3_column_blob(statement, 0);

		(void)fwrite(data ? data : "", 1, (size_t)sqlite3_column_bytes(statement, 0),
		             stdout);
	} else if (rc == SQLITE_DONE) {
		(void)fprintf(stderr, "timerhub-store: %s: no such task in this queue\n",
		              arguments[1]);
		status = REFUSED;
	} else {
		status = complain_of(db, arguments[0]);
	}
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(db);
	return status;
}

/* ---- stat ---- */

static const char stat_query[] =
	"SELECT queue, sum(state IN ('waiting', 'due')) AS waiting, sum(state = 'due') AS due,"
	" sum(state = 'taken') AS taken, sum(state = 'parked') AS parked,"
	" min(iif(state IN ('waiting', 'due'), due_us, NULL)) AS oldest_due_us"
	" FROM timerhub_list WHERE ?1 IS NULL OR queue = ?1 GROUP BY queue ORDER BY queue";

static void print_stat(sqlite3_stmt *row)
{
	if (*sqlite3_column_text(row, 0)) {
		(void)printf("queue ");
		print_text(sqlite3_column_text(row, 0), false);
		(void)printf("\n");
	}
	for (int i = 1; i < 5; i++)
		(void)printf("%-8s %" PRId64 "\n", sqlite3_column_name(row, i),
		             (int64_t)sqlite3_column_int64(row, i));
	if (sqlite3_column_type(row, 5) != SQLITE_NULL) {
		(void)printf("oldest  ");
		when_print("due", (uint64_t)sqlite3_column_int64(row, 5) * 1000);
		(void)printf("\n");
	}
}

/* One family of OpenMetrics: the tasks by queue and state. */
static enum status print_metrics(sqlite3 *db, const char *path, sqlite3_stmt *statement)
{
	static const struct metrics_family family = {
		.name = "timerhub_store_tasks",
		.type = "gauge",
		.help = "Tasks by queue and state; those that are due are part of those that wait.",
	};
	static char buffer[65536];
	struct text text = { .buffer = buffer, .bytes = sizeof(buffer) };
	int rc;

	metrics_add_family(&text, &family);
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
		for (int i = 1; i < 5; i++) {
			char label[2048];
			struct text labels = { .buffer = label, .bytes = sizeof(label) };

			metrics_add_label(&labels, "queue",
			                  (const char *)sqlite3_column_text(statement, 0));
			metrics_add_label(&labels, "state", sqlite3_column_name(statement, i));
			text_end(&labels);
			metrics_add_sample(&text, &family, label,
			                   (uint64_t)sqlite3_column_int64(statement, i), 0);
		}
	metrics_end(&text);
	if (rc != SQLITE_DONE)
		return complain_of(db, path);
	if (text.length >= sizeof(buffer))
		return tool_complain(path, -E2BIG);
	(void)printf("%s", buffer);
	return GOOD;
}

enum status tool_stat(const struct options *options, char **arguments, int count)
{
	sqlite3_stmt *statement;
	enum status status;
	sqlite3 *db;
	int rc = SQLITE_DONE;

	(void)count;
	status = open_db(arguments[0], &db);
	if (status != GOOD)
		return status;
	statement = query(db, arguments[0], stat_query, options->queue);
	if (!statement)
		status = FAILED;
	else if (options->metrics)
		status = print_metrics(db, arguments[0], statement);
	else if (options->json)
		status = print_rows(db, arguments[0], statement, true);
	else {
		bool is_empty = true;

		while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
			print_stat(statement);
			is_empty = false;
		}
		if (rc != SQLITE_DONE)
			status = complain_of(db, arguments[0]);
		else if (is_empty)
			(void)printf("no tasks\n");
	}
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(db);
	return status;
}

/* ---- check ---- */

/* Each query finds tasks that break what the library relies on. */
static const struct invariant {
	const char *what;
	const char *sql;
} invariants[] = {
	{ "tables: the database is not whole", "SELECT integrity_check FROM pragma_integrity_check"
	                                       " WHERE integrity_check <> 'ok'" },
	{ "version: of no known library", "SELECT version FROM timerhub_about"
	                                  " WHERE version < 1 OR min_version > version" },
	{ "version: not one row", "SELECT count(*) FROM timerhub_about HAVING count(*) <> 1" },
	{ "state: none of waiting, taken and parked",
	  "SELECT id FROM timerhub_tasks WHERE lease NOT IN (" LEASE_WAITING ", " LEASE_BY_DONE
	  ", " LEASE_PARKED ") AND lease < " LEASE_BASE },
	{ "parked: a task without a reason, or a reason without being parked",
	  "SELECT id FROM timerhub_tasks"
	  " WHERE (lease = " LEASE_PARKED ") <> (reason IS NOT NULL)" },
	{ "delivery: its number is below the first one",
	  "SELECT id FROM timerhub_tasks WHERE claim < " CLAIM_FIRST },
	{ "attempts: a taken task that was never delivered",
	  "SELECT id FROM timerhub_tasks WHERE " IS_TAKEN " AND claim & 524287 = 0" },
	{ "key: two tasks of a queue have it",
	  "SELECT max(id) FROM timerhub_tasks WHERE key IS NOT NULL GROUP BY queue, key"
	  " HAVING count(*) > 1" },
	{ "id: greater than any that was given",
	  "SELECT id FROM timerhub_tasks"
	  " WHERE id > (SELECT seq FROM sqlite_sequence WHERE name = 'timerhub_tasks')" },
};

/* Prints up to ten faults of one kind, and counts them. */
static enum status find_faults(sqlite3 *db, const char *path, const struct invariant *invariant,
                               unsigned *faults)
{
	sqlite3_stmt *statement = query(db, path, invariant->sql, NULL);
	unsigned found = 0;
	int rc = SQLITE_DONE;

	if (!statement)
		return FAILED;
	while (found < 10 && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
		(void)printf("%sdamaged%s: %s: %s\n", console_colour(stdout, CONSOLE_BAD),
		             console_colour(stdout, CONSOLE_PLAIN), invariant->what,
		             (const char *)sqlite3_column_text(statement, 0));
		found++;
	}
	*faults += found;
	(void)sqlite3_finalize(statement);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? GOOD : complain_of(db, path);
}

enum status tool_check(const struct options *options, char **arguments, int count)
{
	unsigned faults = 0;
	enum status status;
	sqlite3 *db;

	(void)count;
	(void)options;
	status = open_db(arguments[0], &db);
	if (status != GOOD)
		return status;
	console_work_begin("check");
	for (unsigned i = 0; i < sizeof(invariants) / sizeof(invariants[0]) && status == GOOD;
	     i++) {
		console_work("%u of %zu", i + 1, sizeof(invariants) / sizeof(invariants[0]));
		status = find_faults(db, arguments[0], &invariants[i], &faults);
	}
	console_work_end();
	(void)sqlite3_close(db);
	if (status != GOOD)
		return status;
	if (faults == 0)
		(void)printf("%swhole%s: no damage found\n", console_colour(stdout, CONSOLE_GOOD),
		             console_colour(stdout, CONSOLE_PLAIN));
	return faults == 0 ? GOOD : DAMAGED;
}
