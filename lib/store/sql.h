/* SPDX-License-Identifier: MIT */
/* The SQL of a store: its tables and statements. */
#ifndef TIMERHUB_STORE_SQL_H
#define TIMERHUB_STORE_SQL_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The column `lease` holds the state of a task. Like the values of `claim`, all of its values take
 * 8 bytes in the file, so SQLite can change them in place. A take then writes one page, however
 * long the task's data is.
 */
#define LEASE_WAITING "-3000000000000000000"
#define LEASE_BY_DONE                                                                              \
	"-2000000000000000000" /* waiting, for a period that timerhub_store_done() has set */
#define LEASE_PARKED "-1000000000000000000"
/* The value for a taken task is this number plus the end of its lease on CLOCK_BOOTTIME, in us. */
#define LEASE_BASE "1000000000000000000"
#define LEASE_BASE_US INT64_C(1000000000000000000)
/*
 * A taken task keeps in the lowest bit that it was LEASE_BY_DONE, and becomes that again when its
 * lease ends.
 */
#define IS_BY_DONE "(lease&1 OR lease=" LEASE_BY_DONE ")"
#define LEASE_ENDED "iif(lease&1," LEASE_BY_DONE "," LEASE_WAITING ")"
#define IS_WAITING "lease<" LEASE_PARKED
#define IS_TAKEN "lease>0"

/*
 * The column `claim` holds the number of a task's latest delivery above its low 20 bits. Of these,
 * 19 count the attempts, and CLAIM_LAST says that the worker's config allows no more of them.
 * Whatever ends or withdraws a delivery raises the number, so a worker's answer counts only if the
 * number is still the one that he was given.
 */
#define CLAIM_FIRST "281474976710656" /* 2^48 */
#define CLAIM_SHIFT 20
#define CLAIM_LAST 524288 /* 2^19 */
#define CLAIM_ATTEMPTS 524287

/* The least and the largest time that the table accepts: in 2001 and 2286. */
#define DUE_MIN_US INT64_C(1000000000000000)
#define DUE_MAX_US INT64_C(10000000000000000)

/* Returns the negative errno that says why the last call on `db` has failed. */
int error_of(sqlite3 *db);

/* Runs statements that have no parameters. Returns 0 or a negative errno. */
int run_sql(sqlite3 *db, const char *text);

/*
 * Makes the tables, in a transaction of its own or within the caller's. Returns -EOPNOTSUPP if
 * there are tables of a later version.
 */
int schema_install(sqlite3 *db);

enum statement {
	DO_BEGIN,
	/*
	 * The statements from DO_PUT to DO_TOUCH have the numbers of the operations
	 * TIMERHUB_STORE_PUT to STORE_TOUCH (store.h).
	 */
	DO_PUT,
	DO_CANCEL,
	DO_MOVE,
	DO_DONE,
	DO_RETRY,
	DO_PARK,
	DO_TOUCH,
	DO_COMMIT,
	DO_ROLLBACK,
	DO_SAVEPOINT,
	DO_RELEASE,
	DO_UNDO, /* rolls back to the savepoint, and keeps it */
	DO_REPLACE,
	DO_FIND,
	DO_DONE_PERIOD,
	DO_LOOK,
	DO_END_LEASES,
	DO_DUE,
	DO_TAKE,
	DO_MEND_PERIODS,
	DO_CLOCK,
	DO_SET_CLOCK,
	DO_VOID_LEASES,
	DO_COUNT_WAITING,
	DO_COUNT_NEVER,
	DO_COUNT_TAKEN,
	DO_COUNT_PARKED,
	DO_VERSION,
	DO_PAGE_SIZE,
	STATEMENTS
};

/* The statements of one connection. Each is prepared when it is first used. */
struct statements {
	sqlite3 *db;
	sqlite3_stmt *prepared[STATEMENTS];
};

/*
 * The parameters ?1 to ?9 of the statements, in this order. A few statements use ?3 or ?7 for
 * something else, as the comments on these statements say.
 */
struct values {
	int64_t id;
	const char *queue, *key;
	int64_t due_us, interval_us; /* 0 becomes NULL */
	const void *data;
	size_t data_len;
	int64_t lease, claim, number;
};

/*
 * Prepares a statement if necessary, and binds the values to its parameters. The caller steps and
 * resets it. Returns 0 or a negative errno.
 */
int statement_bind(struct statements *statements, enum statement which, const struct values *values,
                   sqlite3_stmt **ret);

/*
 * Runs a statement. If `ret` is NULL, returns how many rows were changed. Otherwise stores the
 * first column of the first row in *ret, and returns 1. Returns 0 if there is no row, or if the
 * column is NULL.
 */
int statement_run(struct statements *statements, enum statement which, const struct values *values,
                  int64_t *ret);

/*
 * Begin and end a transaction. The end commits it, or if `result` is an error, rolls it back.
 * Returns 0 or the error.
 */
int transaction_begin(struct statements *statements);
int transaction_end(struct statements *statements, int result);

/* Begins a part of a transaction. Returns 0 or a negative errno. */
int savepoint_begin(struct statements *statements);
/*
 * Ends a part of a transaction. If `result` is an error, undoes the part. If that fails, rolls back
 * the whole transaction. Returns 0 or an error.
 */
int savepoint_end(struct statements *statements, int result);

void statements_fini(struct statements *statements);

#endif
