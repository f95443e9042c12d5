/* SPDX-License-Identifier: MIT */
/*
 * The text of the statements, and how they are run (statements.h). When the schema has changed,
 * SQLite prepares a statement anew by itself.
 */
#include "store/statements.h"

#include <stddef.h>

#include "base/invariant.h"
#include "store/error.h"
#include "store/schema.h"

#define TASKS "main.timerhub_tasks"
#define SAVEPOINT "timerhub_changes"
/* ?2 is the present time, as a lease that ends now */
#define NOBODY_HAS_IT "(lease<0 OR lease<=?2)"
/* ?2 is the delivery that is answered */
#define IS_CURRENT " WHERE id=?1 AND claim>>20=?2"

static const char *const statement_texts[STATEMENTS] = {
	[DO_BEGIN] = "BEGIN IMMEDIATE",
	[DO_COMMIT] = "COMMIT",
	[DO_SAVEPOINT] = "SAVEPOINT " SAVEPOINT,
	[DO_RELEASE] = "RELEASE " SAVEPOINT,
	[DO_ROLLBACK_TO] = "ROLLBACK TO " SAVEPOINT,
	[DO_PUT] = "INSERT INTO " TASKS "(queue,due_us,key,interval_us,data) VALUES(?1,?2,?3,?4,?5)"
		   " ON CONFLICT(queue,key) DO NOTHING",
	[DO_REPLACE] = "UPDATE " TASKS " SET due_us=?3,interval_us=?4,data=?5,lease=" LEASE_WAITING
		       ",reason=NULL,claim=" CLAIM_ANEW " WHERE id=?1 AND " NOBODY_HAS_IT,
	[DO_FIND] = "SELECT claim>>20 FROM " TASKS " WHERE id=?1 AND (?2 IS NULL OR queue=?2)",
	[DO_FIND_KEY] = "SELECT id FROM " TASKS " WHERE queue=?1 AND key=?2",
	[DO_CANCEL] = "DELETE FROM " TASKS " WHERE id=?1 AND queue=?3 AND " NOBODY_HAS_IT,
	[DO_MOVE] = "UPDATE " TASKS " SET due_us=?4,lease=" LEASE_WAITING
		    ",reason=NULL,claim=" CLAIM_ANEW " WHERE id=?1 AND queue=?3 AND " NOBODY_HAS_IT,
	[DO_DONE] = "DELETE FROM " TASKS IS_CURRENT,
	/* a sum that does not fit into an INTEGER becomes a REAL, which is larger than the limit */
	[DO_DONE_PERIOD] =
		"UPDATE " TASKS " SET due_us=min(due_us+interval_us*?3,10000000000000000),"
		"lease=" LEASE_BY_DONE ",claim=" CLAIM_ANEW IS_CURRENT,
	[DO_RETRY] = "UPDATE " TASKS " SET due_us=?3,lease=" LEASE_WAITING
		     ",claim=" CLAIM_NEXT IS_CURRENT,
	[DO_PARK] = "UPDATE " TASKS " SET reason=?3,lease=" LEASE_PARKED
		    ",claim=" CLAIM_NEXT IS_CURRENT,
	[DO_TOUCH] = "UPDATE " TASKS " SET lease=?3" IS_CURRENT,
	[DO_NEXT_DUE] = "SELECT due_us FROM " TASKS " WHERE queue=?1 AND " IS_WAITING
			" AND due_us>0 ORDER BY due_us LIMIT 1",
	[DO_NEXT_LEASE] = "SELECT min(lease) FROM " TASKS " WHERE queue=?1 AND " IS_TAKEN,
	[DO_END_LEASES] =
		"UPDATE " TASKS " SET lease=" LEASE_WAITING " WHERE id IN(SELECT id FROM " TASKS
		" WHERE queue=?1 AND " IS_TAKEN " AND lease<=?2 LIMIT 1000)",
	[DO_DUE] = "SELECT id,due_us,key,interval_us,claim,data FROM " TASKS
		   " WHERE queue=?1 AND " IS_WAITING " AND due_us<=?2 ORDER BY due_us LIMIT ?3",
	[DO_TAKE] = "UPDATE " TASKS " SET lease=?2,claim=?3 WHERE id=?1",
	[DO_PARK_EXHAUSTED] = "UPDATE " TASKS " SET reason=4294967295,lease=" LEASE_PARKED
			      ",claim=" CLAIM_NEXT " WHERE id=?1",
	[DO_MEND_PERIODS] =
		"UPDATE " TASKS " SET due_us=due_us-interval_us*((due_us-?1-1)/interval_us),"
		"claim=" CLAIM_NEXT " WHERE lease=" LEASE_BY_DONE
		" AND due_us>?1 AND due_us>?1+interval_us",
	[DO_CLOCK] = "SELECT offset_us FROM main.timerhub_clock WHERE ?1 IN(boot,'')",
	[DO_SET_CLOCK] = "UPDATE main.timerhub_clock SET offset_us=?1,"
			 "boot=coalesce(nullif(?2,''),boot)",
	[DO_VOID_LEASES] = "UPDATE " TASKS " SET lease=" LEASE_WAITING
			   " WHERE id IN(SELECT id FROM " TASKS " WHERE " IS_TAKEN ")",
	/* these count in the order of their index, from where the last step has ended */
	[DO_COUNT_WAITING] = "SELECT due_us,id FROM " TASKS " WHERE queue=?1 AND " IS_WAITING
			     " AND (due_us,id)>(?2,?3) ORDER BY due_us,id LIMIT ?4",
	[DO_COUNT_NEVER] = "SELECT 0,id FROM " TASKS " WHERE queue=?1 AND " IS_WAITING
			   " AND due_us IS NULL AND id>?3 AND ?2 NOT NULL ORDER BY id LIMIT ?4",
	[DO_COUNT_TAKEN] = "SELECT lease,id FROM " TASKS " WHERE queue=?1 AND " IS_TAKEN
			   " AND (lease,id)>(?2,?3) ORDER BY lease,id LIMIT ?4",
	[DO_COUNT_PARKED] = "SELECT 0,id FROM " TASKS " WHERE queue=?1 AND lease=" LEASE_PARKED
			    " AND id>?3 AND ?2 NOT NULL ORDER BY id LIMIT ?4",
	[DO_PAGE_SIZE] = "PRAGMA main.page_size",
};

int statement_get(struct statements *statements, enum statement which, sqlite3_stmt **ret)
{
	sqlite3_stmt **statement = &statements->prepared[which];

	invariant(which < STATEMENTS);
	*ret = NULL;
	if (!*statement &&
	    sqlite3_prepare_v3(statements->db, statement_texts[which], -1,
	                       SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK)
		return error_of(statements->db);
	*ret = *statement;
	return 0;
}

int statement_run(struct statements *statements, sqlite3_stmt *statement)
{
	int result;

	do {
		result = sqlite3_step(statement);
	} while (result == SQLITE_ROW);
	result = result == SQLITE_DONE ? sqlite3_changes(statements->db) : error_of(statements->db);
	(void)sqlite3_reset(statement);
	return result;
}

int statement_run_numbers(struct statements *statements, enum statement which, unsigned count,
                          const int64_t *numbers)
{
	sqlite3_stmt *statement;
	int result = statement_get(statements, which, &statement);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < count; i++)
		(void)sqlite3_bind_int64(statement, (int)i + 1, numbers[i]);
	return statement_run(statements, statement);
}

int statement_ask(struct statements *statements, sqlite3_stmt *statement, int64_t *ret)
{
	int result = sqlite3_step(statement);

	if (result == SQLITE_ROW) {
		result = sqlite3_column_type(statement, 0) != SQLITE_NULL;
		*ret = sqlite3_column_int64(statement, 0);
	} else {
		result = result == SQLITE_DONE ? 0 : error_of(statements->db);
	}
	(void)sqlite3_reset(statement);
	return result;
}

void statements_fini(struct statements *statements)
{
	for (unsigned i = 0; i < STATEMENTS; i++)
		(void)sqlite3_finalize(statements->prepared[i]);
}
