/* SPDX-License-Identifier: MIT */
/*
 * The tables. Programs in any language insert into timerhub_tasks, so constraints and triggers keep
 * what the library relies on, and indexes follow by themselves: no trigger has to copy a task
 * elsewhere, which INSERT OR REPLACE would not call for the task that it removes.
 *
 * `data` is the last column, so that none of the others lies on its overflow pages.
 */
#include "store/schema.h"

#include <errno.h>
#include <stddef.h>

#include "store/error.h"

static const char schema_tables[] =
	"CREATE TABLE main.timerhub_about(version INTEGER NOT NULL,min_version INTEGER NOT NULL)"
	" STRICT;"
	"INSERT INTO main.timerhub_about VALUES(1,1);"
	/* the boot of the leases, and how far CLOCK_REALTIME was ahead of CLOCK_BOOTTIME lately */
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
	"data ANY CHECK(typeof(data) IN('blob','text','null')),"
	"UNIQUE(queue,key)) STRICT;";

/* The indexes. A partial one has entries only for tasks in its state. */
static const char schema_indexes[] =
	"CREATE INDEX main.timerhub_due ON timerhub_tasks(queue,due_us) WHERE " IS_WAITING ";"
	"CREATE INDEX main.timerhub_leases ON timerhub_tasks(queue,lease) WHERE " IS_TAKEN ";"
	"CREATE INDEX main.timerhub_parked ON timerhub_tasks(queue) WHERE lease=" LEASE_PARKED ";"
	"CREATE INDEX main.timerhub_periods ON timerhub_tasks(due_us) WHERE lease=" LEASE_BY_DONE
	";";

/*
 * The triggers. The library itself changes `claim` together with the other columns, so a trigger
 * that finds it unchanged sees somebody else's UPDATE. Before an INSERT without an id, NEW.id is
 * not positive.
 */
static const char schema_triggers[] =
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
	" SET lease=iif(" IS_TAKEN "," LEASE_WAITING ",lease),claim=" CLAIM_NEXT
	" WHERE id=NEW.id; END;";

#define NOW_US "CAST((julianday('now')-2440587.5)*86400000000 AS INTEGER)"
#define LEASE_END_US "lease-" LEASE_BASE "+(SELECT offset_us FROM timerhub_clock)"

static const char schema_view[] =
	"CREATE VIEW main.timerhub_list AS SELECT id,queue,key,"
	"CASE WHEN lease=" LEASE_PARKED " THEN 'parked'"
	" WHEN " IS_TAKEN " AND " LEASE_END_US ">" NOW_US " THEN 'taken'"
	" WHEN due_us<=" NOW_US " THEN 'due' ELSE 'waiting' END AS state,"
	"due_us,iif(" IS_TAKEN "," LEASE_END_US ",NULL) AS leased_until_us,"
	"claim&524287 AS attempts,interval_us,reason,"
	"coalesce(iif(typeof(data)='text',length(CAST(data AS BLOB)),length(data)),0) AS bytes"
	" FROM timerhub_tasks;";

/* Returns 1 if the tables are there, 0 if they must be made. */
static int schema_look(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	int version = 0, min_version = 0, result;

	/* does not compile if there is no such table; making the tables finds what else is wrong */
	if (sqlite3_prepare_v2(db, "SELECT version,min_version FROM main.timerhub_about", -1,
	                       &statement, NULL) != SQLITE_OK)
		return sqlite3_errcode(db) == SQLITE_ERROR ? 0 : error_of(db);
	result = sqlite3_step(statement);
	if (result == SQLITE_ROW) {
		version = sqlite3_column_int(statement, 0);
		min_version = sqlite3_column_int(statement, 1);
	}
	result = result == SQLITE_ROW || result == SQLITE_DONE ? 0 : error_of(db);
	(void)sqlite3_finalize(statement);
	if (result < 0 || version <= 0)
		return result < 0 ? result : -EBADMSG;
	return min_version > SCHEMA_VERSION ? -EOPNOTSUPP : version >= SCHEMA_VERSION;
}

static int schema_make(sqlite3 *db)
{
	static const char *const texts[] = { schema_tables, schema_indexes, schema_triggers,
		                             schema_view };
	int result = schema_look(db); /* somebody else may have made them meanwhile */

	if (result != 0)
		return result < 0 ? result : 0;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts) && result == 0; i++)
		result = run_sql(db, texts[i]);
	return result;
}

int schema_install(sqlite3 *db)
{
	int alone = sqlite3_get_autocommit(db), result = schema_look(db);

	if (result != 0)
		return result < 0 ? result : 0;
	result = run_sql(db, alone ? "BEGIN IMMEDIATE" : "SAVEPOINT timerhub_install");
	if (result < 0)
		return result;
	result = schema_make(db);
	if (result == 0)
		result = run_sql(db, alone ? "COMMIT" : "RELEASE timerhub_install");
	/* after an error of the disk, SQLite has rolled back already */
	if (result < 0 && !sqlite3_get_autocommit(db))
		(void)run_sql(db, alone ? "ROLLBACK"
		                        : "ROLLBACK TO timerhub_install;"
		                          "RELEASE timerhub_install");
	return result;
}
