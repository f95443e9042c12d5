/* SPDX-License-Identifier: MIT */
/* The SQL of a store: its tables and statements. */
#ifndef TIMERHUB_STORE_SQL_H
#define TIMERHUB_STORE_SQL_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The values of the column `lease`, the state of a task. All take 8 bytes, so that SQLite changes
 * them in place.
 */
#define LEASE_WAITING "-3000000000000000000"
#define LEASE_BY_DONE                                                                              \
	"-2000000000000000000" /* waiting, for a period that timerhub_store_done() has set */
#define LEASE_PARKED "-1000000000000000000"
/* The value for a taken task is this number plus the end of its lease on CLOCK_BOOTTIME, in us. */
#define LEASE_BASE "1000000000000000000"
#define LEASE_BASE_US INT64_C(1000000000000000000)
/* The lowest bit of a taken task says that it was LEASE_BY_DONE, and will be again. */
#define IS_BY_DONE "(lease&1 OR lease=" LEASE_BY_DONE ")"
#define LEASE_ENDED "iif(lease&1," LEASE_BY_DONE "," LEASE_WAITING ")"
#define IS_WAITING "lease<" LEASE_PARKED
#define IS_TAKEN "lease>0"

/*
 * The column `claim` has the number of the latest delivery above 20 bits for the attempts. An
 * answer counts only for that number.
 */
#define CLAIM_FIRST "281474976710656" /* 2^48 */
#define CLAIM_SHIFT 20
#define CLAIM_LAST 524288     /* 2^19: the config allows no more attempts */
#define CLAIM_ATTEMPTS 524287 /* the bits that count the attempts */

/* The least and the largest time that the table accepts: in 2001 and 2286. */
#define DUE_MIN_US INT64_C(1000000000000000)
#define DUE_MAX_US INT64_C(10000000000000000)

/* Returns the negative errno that says why the last call on `db` has failed. */
int error_of(sqlite3 *db);

/* Runs statements that have no parameters. Returns 0 or a negative errno. */
int run_sql(sqlite3 *db, const char *text);

/* Makes the tables if they are missing. Returns -EOPNOTSUPP if they are of a later version. */
int schema_install(sqlite3 *db);

enum statement {
	DO_BEGIN,
	/*
	 * DO_PUT to DO_TOUCH have the values of the ops, because change_make() casts one to the
	 * other.
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

/* The parameters ?1 to ?9. A few statements use ?3 or ?7 differently, as their comments say. */
struct values {
	int64_t id;
	const char *queue, *key;
	int64_t due_us, interval_us; /* 0 becomes NULL */
	const void *data;
	size_t data_len;
	int64_t lease, claim, number;
};

/* Prepares a statement if necessary, and binds values to it. The caller steps and resets it. */
int statement_bind(struct statements *statements, enum statement which, const struct values *values,
                   sqlite3_stmt **ret);

/*
 * Returns how many rows were changed. With `ret`, stores a value there, and returns 1 if there was
 * one.
 */
int statement_run(struct statements *statements, enum statement which, const struct values *values,
                  int64_t *ret);

/* Begin and end a transaction, which is rolled back if `result` is an error. */
int transaction_begin(struct statements *statements);
int transaction_end(struct statements *statements, int result);

/* Begin and end a savepoint. The end undoes the changes if `result` is an error. */
int savepoint_begin(struct statements *statements);
int savepoint_end(struct statements *statements, int result);

void statements_fini(struct statements *statements);

#endif
