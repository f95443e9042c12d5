/* SPDX-License-Identifier: MIT */
/*
 * Everything that the store asks of SQLite by SQL. Programs in any language insert into
 * timerhub_tasks, so constraints and triggers protect what the library relies on. There is one
 * table, because its indexes follow every change by themselves. A second table would need triggers,
 * which SQLite does not run for the row that INSERT OR REPLACE removes.
 *
 * If the sum in DO_DONE_PERIOD does not fit into 64 bits, SQLite computes it in floating point, and
 * min() still finds it larger than 10^16.
 *
 * `data` is the last column, so that none of the others lies on its overflow pages.
 *
 * schema_look() takes SQLITE_ERROR to mean that the tables are missing. If the cause is another
 * one, schema_install() fails when it makes the tables, and returns that error.
 */
#include "store/sql.h"

#include <errno.h>
#include <stdbool.h>

/* ---- errors ---- */

int error_of(sqlite3 *db)
{
	/*
	 * SQLITE_ERROR becomes EBADMSG, because the library's statements fail to compile only if
	 * somebody has changed its tables
	 */
	static const int errors[] = {
		[SQLITE_ERROR] = EBADMSG,       [SQLITE_SCHEMA] = EBADMSG,
		[SQLITE_CORRUPT] = EBADMSG,     [SQLITE_NOTADB] = EBADMSG,
		[SQLITE_FORMAT] = EBADMSG,      [SQLITE_BUSY] = EBUSY,
		[SQLITE_LOCKED] = EBUSY,        [SQLITE_PROTOCOL] = EBUSY,
		[SQLITE_FULL] = ENOSPC,         [SQLITE_READONLY] = EROFS,
		[SQLITE_PERM] = EACCES,         [SQLITE_AUTH] = EACCES,
		[SQLITE_NOMEM] = ENOMEM,        [SQLITE_CONSTRAINT] = EINVAL,
		[SQLITE_MISMATCH] = EINVAL,     [SQLITE_TOOBIG] = EMSGSIZE,
		[SQLITE_INTERRUPT] = ECANCELED,
	};
	int full = sqlite3_extended_errcode(db), number = sqlite3_system_errno(db);
	unsigned code = (unsigned)full & 0xff;

	if (code == SQLITE_CANTOPEN)
		return number > 0 ? -number : -ENOENT;
	/* SQLITE_IOERR does not always mean that the disk is broken */
	if (full == SQLITE_IOERR_NOMEM)
		return -ENOMEM;
	if (full == SQLITE_IOERR_SHMSIZE || /* its errno is lost */
	    ((full == SQLITE_IOERR_WRITE || full == SQLITE_IOERR_TRUNCATE) &&
	     (number == ENOSPC || number == EDQUOT || number == EFBIG)))
		return -ENOSPC;
	return code < sizeof(errors) / sizeof(*errors) && errors[code] != 0 ? -errors[code] : -EIO;
}

int run_sql(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : error_of(db);
}

/* ---- the tables ---- */

#define CLAIM_NEXT "claim+1048576"       /* the next delivery, with the same attempts */
#define CLAIM_ANEW "((claim>>20)+1)<<20" /* the next delivery, with 0 attempts */

#define NOW_US "CAST((julianday('now')-2440587.5)*86400000000 AS INTEGER)"
#define LEASE_END_US "lease-" LEASE_BASE "+(SELECT offset_us FROM timerhub_clock)"

static const char schema[] =
	"CREATE TABLE main.timerhub_about(version INTEGER NOT NULL,min_version INTEGER NOT NULL)"
	" STRICT;"
	"INSERT INTO main.timerhub_about VALUES(1,1);"
	/* `boot` is the machine's boot id. `offset_us` is CLOCK_REALTIME minus CLOCK_BOOTTIME. */
	"CREATE TABLE main.timerhub_clock(boot TEXT NOT NULL,offset_us INTEGER NOT NULL) STRICT;"
	"INSERT INTO main.timerhub_clock VALUES('',0);"
	"CREATE TABLE main.timerhub_tasks("
	"id INTEGER PRIMARY KEY AUTOINCREMENT CHECK(id>0),"
	"queue TEXT NOT NULL DEFAULT '',"
	"due_us INTEGER CONSTRAINT \"due_us is microseconds since 1970, from 10^15 to 10^16\""
	" CHECK(due_us BETWEEN 1000000000000000 AND 10000000000000000),"
	"key TEXT CONSTRAINT \"key has 1 to 255 bytes and no NUL\""
	" CHECK(length(CAST(key AS BLOB)) BETWEEN 1 AND 255 AND instr(key,char(0))=0),"
	"interval_us INTEGER CHECK(interval_us>0),"
	"lease INTEGER NOT NULL DEFAULT " LEASE_WAITING ","
	"claim INTEGER NOT NULL DEFAULT " CLAIM_FIRST ","
	"reason INTEGER,"
	/*
	 * Data may be NULL, TEXT or BLOB. The check refuses the two other types, INTEGER and REAL,
	 * because with a list of three types SQLite would build a temporary table at each INSERT.
	 */
	"data ANY CHECK(typeof(data) NOT IN('integer','real')),"
	"UNIQUE(queue,key)) STRICT;"
	/* each index lists only the tasks in one state */
	"CREATE INDEX main.timerhub_due ON timerhub_tasks(queue,due_us) WHERE " IS_WAITING ";"
	"CREATE INDEX main.timerhub_leases ON timerhub_tasks(queue,lease) WHERE " IS_TAKEN ";"
	"CREATE INDEX main.timerhub_parked ON timerhub_tasks(queue) WHERE lease=" LEASE_PARKED ";"
	"CREATE INDEX main.timerhub_periods ON timerhub_tasks(due_us) WHERE lease=" LEASE_BY_DONE
	";"
	/*
	 * The library changes `claim` whenever it changes a task. So if a trigger finds `claim`
	 * unchanged, another program has made the UPDATE. Before an INSERT without an id, NEW.id is
	 * not positive.
	 */
	"CREATE TRIGGER main.timerhub_new_id BEFORE INSERT ON timerhub_tasks WHEN NEW.id>0 AND"
	" NEW.id<=(SELECT seq FROM sqlite_sequence WHERE name='timerhub_tasks')"
	" BEGIN SELECT RAISE(ABORT,'the id was another task''s, leave it out'); END;"
	"CREATE TRIGGER main.timerhub_same_id AFTER UPDATE OF id,rowid,oid,_rowid_"
	" ON timerhub_tasks WHEN NEW.id<>OLD.id"
	" BEGIN SELECT RAISE(ABORT,'a task keeps its id'); END;"
	"CREATE TRIGGER main.timerhub_moved AFTER UPDATE OF due_us ON timerhub_tasks"
	" WHEN NEW.claim=OLD.claim BEGIN UPDATE timerhub_tasks SET lease=" LEASE_WAITING
	",reason=NULL,claim=" CLAIM_ANEW " WHERE id=NEW.id; END;"
	"CREATE TRIGGER main.timerhub_edited AFTER UPDATE OF queue,key,data,interval_us"
	" ON timerhub_tasks WHEN NEW.claim=OLD.claim BEGIN UPDATE timerhub_tasks"
	" SET lease=iif(" IS_TAKEN " OR (lease=" LEASE_BY_DONE
	" AND NEW.interval_us IS NOT OLD.interval_us)," LEASE_WAITING ",lease),claim=" CLAIM_NEXT
	" WHERE id=NEW.id; END;"
	"CREATE VIEW main.timerhub_list AS SELECT id,queue,key,"
	"CASE WHEN lease=" LEASE_PARKED " THEN 'parked'"
	" WHEN " IS_TAKEN " AND " LEASE_END_US ">" NOW_US " THEN 'taken'"
	" WHEN due_us<=" NOW_US " THEN 'due' ELSE 'waiting' END AS state,"
	"due_us,iif(" IS_TAKEN "," LEASE_END_US ",NULL) AS leased_until_us,"
	"claim&524287 AS attempts,interval_us,reason,"
	"coalesce(iif(typeof(data)='text',length(CAST(data AS BLOB)),length(data)),0) AS bytes"
	" FROM timerhub_tasks;";

/* Returns 1 if the tables are there, 0 if they must be made, or a negative errno. */
static int schema_look(sqlite3 *db)
{
	struct statements statements = { .db = db };
	int64_t newer = 0;
	int result = statement_run(&statements, DO_VERSION, NULL, &newer);

	/* SQLITE_ERROR most likely means that there is no such table. */
	if (result < 0 && sqlite3_errcode(db) == SQLITE_ERROR)
		result = 0;
	else if (result == 0)
		result = -EBADMSG; /* the table has no row */
	else if (result > 0 && newer)
		result = -EOPNOTSUPP;
	statements_fini(&statements);
	return result;
}

int schema_install(sqlite3 *db)
{
	struct statements statements = { .db = db };
	bool alone = sqlite3_get_autocommit(db) != 0;
	int result = schema_look(db);

	if (result != 0)
		return result < 0 ? result : 0;
	if (alone)
		result = transaction_begin(&statements);
	else
		result = savepoint_begin(&statements);
	if (result == 0) {
		/* another process may have made the tables since the first schema_look() */
		result = schema_look(db);
		if (result == 0)
			result = run_sql(db, schema);
		if (alone)
			result = transaction_end(&statements, result);
		else
			result = savepoint_end(&statements, result);
	}
	statements_fini(&statements);
	return !alone && sqlite3_get_autocommit(db) ? -ECANCELED : result;
}

/* ---- the statements ---- */

#define TASKS "main.timerhub_tasks"
/* The task whose id is ?1, or if that is 0, whose key is ?3. */
#define IS_NAMED                                                                                   \
	" WHERE id=coalesce(nullif(?1,0),(SELECT id FROM " TASKS " WHERE queue=?2 AND key=?3))"    \
	" AND (?2 IS NULL OR queue=?2)"
/* ?7 is the value that `lease` has if a lease ends now. */
#define NOBODY_HAS_IT " AND (lease<0 OR lease<=?7)"
/* ?8 is the number of the delivery that a worker answers. */
#define IS_CURRENT " WHERE id=?1 AND claim>>20=?8"

/*
 * SQLite uses a partial index only if a condition repeats that of the index word for word. So the
 * conditions here are macros, such as IS_WAITING.
 */
static const char *const statement_texts[STATEMENTS] = {
	[DO_BEGIN] = "BEGIN IMMEDIATE",
	[DO_COMMIT] = "COMMIT",
	[DO_ROLLBACK] = "ROLLBACK",
	[DO_SAVEPOINT] = "SAVEPOINT timerhub_changes",
	[DO_RELEASE] = "RELEASE timerhub_changes",
	[DO_UNDO] = "ROLLBACK TO timerhub_changes",
	[DO_PUT] = "INSERT INTO " TASKS "(queue,due_us,key,interval_us,data) VALUES(?2,?4,?3,?5,?6)"
		   " ON CONFLICT(queue,key) DO NOTHING",
	[DO_REPLACE] = "UPDATE " TASKS " SET due_us=?4,interval_us=?5,data=?6,lease=" LEASE_WAITING
		       ",reason=NULL,claim=" CLAIM_ANEW IS_NAMED NOBODY_HAS_IT,
	[DO_FIND] = "SELECT id FROM " TASKS IS_NAMED,
	[DO_CANCEL] = "DELETE FROM " TASKS IS_NAMED NOBODY_HAS_IT,
	[DO_MOVE] = "UPDATE " TASKS " SET due_us=?4,lease=" LEASE_WAITING
		    ",reason=NULL,claim=" CLAIM_ANEW IS_NAMED NOBODY_HAS_IT,
	[DO_DONE] = "DELETE FROM " TASKS IS_CURRENT,
	/* the new due time is at most 10^16, the latest that the table accepts */
	[DO_DONE_PERIOD] =
		"UPDATE " TASKS " SET due_us=min(due_us+interval_us*?9,10000000000000000),"
		"lease=" LEASE_BY_DONE ",claim=" CLAIM_ANEW IS_CURRENT,
	[DO_RETRY] = "UPDATE " TASKS " SET due_us=?4,lease=" LEASE_WAITING
		     ",claim=" CLAIM_NEXT IS_CURRENT,
	[DO_PARK] = "UPDATE " TASKS " SET reason=?9,lease=" LEASE_PARKED
		    ",claim=" CLAIM_NEXT IS_CURRENT,
	[DO_TOUCH] = "UPDATE " TASKS " SET lease=?7+" IS_BY_DONE IS_CURRENT,
	/* gets the next due time, the first lease end, and CLOCK_REALTIME minus CLOCK_BOOTTIME */
	[DO_LOOK] = "SELECT (SELECT due_us FROM " TASKS " WHERE queue=?2 AND " IS_WAITING
		    " AND due_us>0 ORDER BY due_us LIMIT 1),(SELECT min(lease) FROM " TASKS
		    " WHERE queue=?2 AND " IS_TAKEN "),(SELECT offset_us FROM main.timerhub_clock)",
	[DO_END_LEASES] = "UPDATE " TASKS " SET lease=" LEASE_ENDED " WHERE queue=?2 AND " IS_TAKEN
			  " AND lease<=?7",
	[DO_DUE] = "SELECT id,due_us,key,interval_us,claim,data FROM " TASKS
		   " WHERE queue=?2 AND " IS_WAITING " AND due_us<=?4 ORDER BY due_us LIMIT 1",
	[DO_TAKE] = "UPDATE " TASKS " SET lease=?7+" IS_BY_DONE ",claim=?8 WHERE id=?1",
	[DO_MEND_PERIODS] =
		"UPDATE " TASKS " SET due_us=due_us-interval_us*((due_us-?4-1)/interval_us),"
		"claim=" CLAIM_NEXT " WHERE lease=" LEASE_BY_DONE
		" AND due_us>?4 AND due_us>?4+interval_us",
	/* Finds no row if the boot id has changed. ?3 is the present one, or '' if unknown. */
	[DO_CLOCK] = "SELECT offset_us FROM main.timerhub_clock WHERE ?3 IN(boot,'')",
	/*
	 * Stores ?9, which is CLOCK_REALTIME minus CLOCK_BOOTTIME, and ?3, the id of the present
	 * boot. If ?3 is '', the old boot id stays.
	 */
	[DO_SET_CLOCK] = "UPDATE main.timerhub_clock SET offset_us=?9,"
			 "boot=coalesce(nullif(?3,''),boot)",
	[DO_VOID_LEASES] = "UPDATE " TASKS " SET lease=" LEASE_ENDED
			   " WHERE id IN(SELECT id FROM " TASKS " WHERE " IS_TAKEN ")",
	/*
	 * The next four statements list tasks, at most ?9 at a time. ?1 is the id of the last task
	 * that was listed, and ?7 the first column of its row; both are 0 at first.
	 */
	[DO_COUNT_WAITING] = "SELECT due_us,id FROM " TASKS " WHERE queue=?2 AND " IS_WAITING
			     " AND (due_us,id)>(?7,?1) ORDER BY due_us,id LIMIT ?9",
	[DO_COUNT_NEVER] = "SELECT 0,id FROM " TASKS " WHERE queue=?2 AND " IS_WAITING
			   " AND due_us IS NULL AND id>?1 ORDER BY id LIMIT ?9",
	[DO_COUNT_TAKEN] = "SELECT lease,id FROM " TASKS " WHERE queue=?2 AND " IS_TAKEN
			   " AND (lease,id)>(?7,?1) ORDER BY lease,id LIMIT ?9",
	[DO_COUNT_PARKED] = "SELECT 0,id FROM " TASKS " WHERE queue=?2 AND lease=" LEASE_PARKED
			    " AND id>?1 ORDER BY id LIMIT ?9",
	/* the result is 1 if the tables need a later version of this library, and 0 if not */
	[DO_VERSION] = "SELECT min_version>1 FROM main.timerhub_about WHERE version>0",
	[DO_PAGE_SIZE] = "PRAGMA main.page_size",
};

static void bind_number_or_null(sqlite3_stmt *statement, int at, int64_t number)
{
	if (number != 0)
		(void)sqlite3_bind_int64(statement, at, number);
	else
		(void)sqlite3_bind_null(statement, at);
}

/* SQLite does not copy the strings and data in *values: keep them until the statement has run. */
int statement_bind(struct statements *statements, enum statement which, const struct values *values,
                   sqlite3_stmt **ret)
{
	sqlite3_stmt *statement = statements->prepared[which];
	int queue, key, data;

	if (!statement &&
	    sqlite3_prepare_v3(statements->db, statement_texts[which], -1,
	                       SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
		return error_of(statements->db);
	statements->prepared[which] = *ret = statement;
	if (!values)
		return 0;
	(void)sqlite3_bind_int64(statement, 1, values->id);
	queue = sqlite3_bind_text(statement, 2, values->queue, -1, SQLITE_STATIC);
	key = sqlite3_bind_text(statement, 3, values->key, -1, SQLITE_STATIC);
	bind_number_or_null(statement, 4, values->due_us);
	bind_number_or_null(statement, 5, values->interval_us);
	(void)sqlite3_bind_int64(statement, 7, values->lease);
	(void)sqlite3_bind_int64(statement, 8, values->claim);
	(void)sqlite3_bind_int64(statement, 9, values->number);
	data = sqlite3_bind_blob64(statement, 6, values->data ? values->data : "", values->data_len,
	                           SQLITE_STATIC);
	/* SQLITE_RANGE only means that the statement lacks this parameter, so it is no error */
	if (queue == SQLITE_NOMEM || key == SQLITE_NOMEM || data == SQLITE_NOMEM)
		return -ENOMEM;
	return data == SQLITE_TOOBIG ? -EMSGSIZE : 0;
}

int statement_run(struct statements *statements, enum statement which, const struct values *values,
                  int64_t *ret)
{
	sqlite3_stmt *statement = NULL;
	int result = statement_bind(statements, which, values, &statement);

	if (result < 0)
		return result;
	do
		result = sqlite3_step(statement);
	while (result == SQLITE_ROW && !ret); /* the row of PRAGMA count_changes */
	if (result == SQLITE_ROW) {
		*ret = sqlite3_column_int64(statement, 0);
		result = sqlite3_column_type(statement, 0) != SQLITE_NULL;
	} else if (result == SQLITE_DONE) {
		result = ret ? 0 : sqlite3_changes(statements->db);
	} else {
		result = error_of(statements->db);
	}
	(void)sqlite3_reset(statement);
	return result;
}

/*
 * Begins a transaction or a savepoint. First prepares the statements for the rollback, because
 * there may be no memory for them later.
 */
static int begin(struct statements *statements, enum statement which)
{
	static const enum statement undoing[] = { DO_ROLLBACK, DO_UNDO, DO_RELEASE };
	sqlite3_stmt *prepared;
	int result = 0;

	for (unsigned i = 0; i < sizeof(undoing) / sizeof(*undoing) && result == 0; i++)
		result = statement_bind(statements, undoing[i], NULL, &prepared);
	if (result == 0)
		result = statement_run(statements, which, NULL, NULL);
	return result < 0 ? result : 0;
}

/*
 * Rolls the transaction back, if SQLite has not done so itself. ROLLBACK can fail for lack of
 * memory, so try again: another thread may free some meanwhile.
 */
static void roll_back(struct statements *statements)
{
	for (int i = 0; i < 100 && !sqlite3_get_autocommit(statements->db); i++)
		(void)statement_run(statements, DO_ROLLBACK, NULL, NULL);
}

int transaction_begin(struct statements *statements)
{
	roll_back(statements); /* if there was no memory for it at the end of the last one */
	return begin(statements, DO_BEGIN);
}

int transaction_end(struct statements *statements, int result)
{
	if (result >= 0)
		result = statement_run(statements, DO_COMMIT, NULL, NULL);
	if (result < 0)
		roll_back(statements);
	return result < 0 ? result : 0;
}

int savepoint_begin(struct statements *statements)
{
	return begin(statements, DO_SAVEPOINT);
}

int savepoint_end(struct statements *statements, int result)
{
	int undone = 0;

	if (result >= 0)
		result = statement_run(statements, DO_RELEASE, NULL, NULL);
	if (result >= 0)
		return 0;
	if (!sqlite3_get_autocommit(statements->db)) {
		undone = statement_run(statements, DO_UNDO, NULL, NULL);
		if (undone >= 0)
			undone = statement_run(statements, DO_RELEASE, NULL, NULL);
	}
	if (undone >= 0)
		return result;
	/* the other changes of the transaction are lost too, and their callers get this error */
	roll_back(statements);
	return undone;
}

void statements_fini(struct statements *statements)
{
	for (unsigned i = 0; i < STATEMENTS; i++)
		(void)sqlite3_finalize(statements->prepared[i]);
}
