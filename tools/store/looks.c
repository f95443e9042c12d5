/* SPDX-License-Identifier: MIT */
/*
 * The commands that only read. They open the database read-only by SQLite itself, so they can
 * change nothing, and also work for a user who may not write to the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <metrics/openmetrics.h>
#include <store/sql.h>
#include <when.h>

#include "tool.h"

/* ---- the connection ---- */

/* A query of a database. */
struct look {
	const char *path;
	sqlite3 *db;
	sqlite3_stmt *statement;
};

/* Prints SQLite's message about the file, and returns the exit status for the error. */
static enum status look_complain(const struct look *look)
{
	int error = sqlite3_errcode(look->db);

	(void)tool_refuse(look->path, sqlite3_errmsg(look->db));
	return error == SQLITE_CORRUPT || error == SQLITE_NOTADB ? DAMAGED : FAILED;
}

static void look_close(struct look *look)
{
	(void)sqlite3_finalize(look->statement);
	(void)sqlite3_close(look->db);
}

/* Prepares a query in place of the last one, and binds its first text, for which NULL means any. */
static enum status look_ask(struct look *look, const char *sql, const char *text)
{
	(void)sqlite3_finalize(look->statement);
	look->statement = NULL;
	if (sqlite3_prepare_v2(look->db, sql, -1, &look->statement, NULL) != SQLITE_OK ||
	    (text && sqlite3_bind_text(look->statement, 1, text, -1, SQLITE_STATIC) != SQLITE_OK))
		return look_complain(look);
	return GOOD;
}

/* Steps to the next row. Returns false at the end, and after an error, which sets *ret_status. */
static bool look_next(struct look *look, enum status *ret_status)
{
	int rc = sqlite3_step(look->statement);

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		*ret_status = look_complain(look);
	return rc == SQLITE_ROW;
}

/* Opens a database that has the tables of a store, and prepares a query. */
static enum status look_open(struct look *look, const char *path, const char *sql, const char *text)
{
	enum status status = GOOD;

	*look = (struct look){ .path = path };
	if (access(path, F_OK) < 0)
		return tool_complain(path, -errno);
	if (sqlite3_open_v2(path, &look->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(look->db, 5000) != SQLITE_OK)
		status = look_complain(look);
	if (status == GOOD)
		status = look_ask(look, "SELECT 1 FROM sqlite_schema WHERE name = ?1",
		                  "timerhub_about");
	if (status == GOOD && !look_next(look, &status) && status == GOOD) {
		(void)tool_refuse(path, "has no tables of a store");
		status = FAILED;
	}
	if (status == GOOD)
		status = look_ask(look, sql, text);
	if (status != GOOD)
		look_close(look);
	return status;
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

/* Prints a column as text, if it says something: its name and its value. */
static void print_column(sqlite3_stmt *row, int column)
{
	const char *name = sqlite3_column_name(row, column);

	if (!name) {
		(void)printf("\n"); /* behind the last one */
	} else if (column == 0) {
		(void)printf("%s", (const char *)sqlite3_column_text(row, column));
	} else if (sqlite3_column_type(row, column) == SQLITE_NULL) {
		if (strcmp(name, "due_us") == 0)
			when_print("due", WHEN_NEVER);
	} else if (strcmp(name, "due_us") == 0 || strcmp(name, "leased_until_us") == 0) {
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
static enum status print_rows(struct look *look, bool json)
{
	enum status status = GOOD;
	bool first = true;

	if (json)
		(void)printf("[");
	for (; look_next(look, &status); first = false)
		if (json)
			print_json_row(look->statement, first);
		else
			for (int i = 0; i <= sqlite3_column_count(look->statement); i++)
				print_column(look->statement, i);
	if (json)
		(void)printf("]\n");
	return status;
}

/* ---- list, show ---- */

enum status tool_list(char **arguments)
{
	uint64_t limit = INT64_MAX;
	enum status status;
	struct look look;

	if (arguments[1] && (!console_number(arguments[1], &limit) || limit > INT64_MAX))
		return misused("COUNT must be a number, not", arguments[1]);
	status = look_open(&look, arguments[0],
	                   "SELECT id, state, due_us, leased_until_us, attempts, interval_us,"
	                   " reason, bytes, queue, key FROM timerhub_list"
	                   " WHERE ?1 IS NULL OR queue = ?1"
	                   " ORDER BY state = 'parked', due_us IS NULL, due_us, id LIMIT ?2",
	                   options.queue);
	if (status != GOOD)
		return status;
	(void)sqlite3_bind_int64(look.statement, 2, (int64_t)limit);
	status = print_rows(&look, options.json);
	look_close(&look);
	return status;
}

enum status tool_show(char **arguments)
{
	const char *key = NULL;
	uint64_t id = 0;
	enum status status;
	struct look look;

	if (!tool_read_task(arguments[1], &id, &key))
		return misused("TASK must be the id of a task, or =KEY, not", arguments[1]);
	status = look_open(&look, arguments[0],
	                   "SELECT CAST(data AS BLOB) FROM timerhub_tasks"
	                   " WHERE queue = ?1 AND (key = ?2 OR id = ?3)",
	                   options.queue ? options.queue : "");
	if (status != GOOD)
		return status;
	if (key)
		(void)sqlite3_bind_text(look.statement, 2, key, -1, SQLITE_STATIC);
	else
		(void)sqlite3_bind_int64(look.statement, 3, (int64_t)id);
	if (look_next(&look, &status)) {
		const void *data = sqlite3_column_blob(look.statement, 0);

		(void)fwrite(data ? data : "", 1, (size_t)sqlite3_column_bytes(look.statement, 0),
		             stdout);
	} else if (status == GOOD) {
		status = tool_refuse(arguments[1], "no such task in this queue");
	}
	look_close(&look);
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

/* Prints one family of OpenMetrics: the tasks by queue and state. */
static enum status print_metrics(struct look *look)
{
	static const struct metrics_family family = {
		.name = "timerhub_store_tasks",
		.type = "gauge",
		.help = "Tasks by queue and state; those that are due are part of those that wait.",
	};
	static char buffer[65536];
	struct text text = { .buffer = buffer, .bytes = sizeof(buffer) };
	enum status status = GOOD;

	metrics_add_family(&text, &family);
	while (look_next(look, &status))
		for (int i = 1; i < 5; i++) {
			char label[2048];
			struct text labels = { .buffer = label, .bytes = sizeof(label) };

			metrics_add_label(&labels, "queue",
			                  (const char *)sqlite3_column_text(look->statement, 0));
			metrics_add_label(&labels, "state",
			                  sqlite3_column_name(look->statement, i));
			text_end(&labels);
			metrics_add_sample(&text, &family, label,
			                   (uint64_t)sqlite3_column_int64(look->statement, i), 0);
		}
	metrics_end(&text);
	if (status == GOOD && text.length >= sizeof(buffer))
		return tool_complain(look->path, -E2BIG);
	(void)printf("%s", status == GOOD ? buffer : "");
	return status;
}

enum status tool_stat(char **arguments)
{
	struct look look;
	enum status status = look_open(&look, arguments[0], stat_query, options.queue);
	bool is_empty = true;

	if (status != GOOD)
		return status;
	if (options.metrics)
		status = print_metrics(&look);
	else if (options.json)
		status = print_rows(&look, true);
	else {
		for (; look_next(&look, &status); is_empty = false)
			print_stat(look.statement);
		if (is_empty && status == GOOD)
			(void)printf("no tasks\n");
	}
	look_close(&look);
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
	{ "id: greater than any that was given",
	  "SELECT id FROM timerhub_tasks"
	  " WHERE id > (SELECT seq FROM sqlite_sequence WHERE name = 'timerhub_tasks')" },
};

/* Prints up to ten faults of each kind. */
enum status tool_check(char **arguments)
{
	const unsigned all = sizeof(invariants) / sizeof(invariants[0]);
	struct look look;
	enum status status = look_open(&look, arguments[0], invariants[0].sql, NULL);
	bool is_damaged = false;

	if (status != GOOD)
		return status;
	for (unsigned i = 0; i < all && status == GOOD; i++) {
		status = look_ask(&look, invariants[i].sql, NULL);
		for (unsigned j = 0; j < 10 && status == GOOD && look_next(&look, &status); j++) {
			(void)printf("%sdamaged%s: %s: %s\n", console_colour(stdout, CONSOLE_BAD),
			             console_colour(stdout, CONSOLE_PLAIN), invariants[i].what,
			             (const char *)sqlite3_column_text(look.statement, 0));
			is_damaged = true;
		}
	}
	look_close(&look);
	if (status != GOOD || is_damaged)
		return status != GOOD ? status : DAMAGED;
	(void)printf("%swhole%s: no damage found\n", console_colour(stdout, CONSOLE_GOOD),
	             console_colour(stdout, CONSOLE_PLAIN));
	return GOOD;
}
