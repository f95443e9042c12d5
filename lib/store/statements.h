/* SPDX-License-Identifier: MIT */
/* The statements that the library runs, on its own connection or on a caller's. */
#ifndef TIMERHUB_STORE_STATEMENTS_H
#define TIMERHUB_STORE_STATEMENTS_H

#include <sqlite3.h>
#include <stdint.h>

enum statement {
	DO_BEGIN,
	DO_COMMIT,
	DO_SAVEPOINT,
	DO_RELEASE,
	DO_ROLLBACK_TO,
	DO_PUT,
	DO_REPLACE,
	DO_FIND,
	DO_FIND_KEY,
	DO_CANCEL,
	DO_MOVE,
	DO_DONE,
	DO_DONE_PERIOD,
	DO_RETRY,
	DO_PARK,
	DO_TOUCH,
	DO_NEXT_DUE,
	DO_NEXT_LEASE,
	DO_END_LEASES,
	DO_DUE,
	DO_TAKE,
	DO_PARK_EXHAUSTED,
	DO_MEND_PERIODS,
	DO_CLOCK,
	DO_SET_CLOCK,
	DO_VOID_LEASES,
	DO_COUNT_WAITING,
	DO_COUNT_NEVER,
	DO_COUNT_TAKEN,
	DO_COUNT_PARKED,
	DO_PAGE_SIZE,
	STATEMENTS
};

/* The statements of one connection, each of which is prepared at its first use. */
struct statements {
	sqlite3 *db;
	sqlite3_stmt *prepared[STATEMENTS];
};

/* Stores a statement whose parameters can be bound. Returns 0 or a negative errno. */
int statement_get(struct statements *statements, enum statement which, sqlite3_stmt **ret);

/*
 * Runs a statement to its end and makes it ready for its next use. Returns how many rows it has
 * changed, or a negative errno.
 */
int statement_run(struct statements *statements, sqlite3_stmt *statement);

/* Runs a statement that has only numbers as its parameters, `count` of them. */
int statement_run_numbers(struct statements *statements, enum statement which, unsigned count,
                          const int64_t *numbers);

/*
 * Runs a statement, and stores the first column of its first row. Returns 1, 0 if there is no row
 * or the column is NULL, or a negative errno.
 */
int statement_ask(struct statements *statements, sqlite3_stmt *statement, int64_t *ret);

void statements_fini(struct statements *statements);

#endif
