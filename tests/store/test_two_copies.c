/* SPDX-License-Identifier: MIT */
/*
 * A program that has a copy of SQLite of its own, which the linker hides from the library: the
 * calls that would use both must refuse, because two copies drop each other's locks.
 */
#include <errno.h>

#include "fixture.h"
#include <harness.h>

TEST(own_copy_of_sqlite_is_refused, 60)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_PUT };
	struct timerhub_store *none = NULL;

	fixture_name();
	expect_eq(timerhub_store_open(&none, database, NULL), -EXDEV);
	expect(!none);
	plain = sql_open();
	expect_eq(timerhub_store_install(plain), -EXDEV);
	expect_eq(sql_number("SELECT count(*) FROM sqlite_schema"), 0);
	/* as a program opens it that finds the function by dlsym() */
	expect_eq((timerhub_store_open)(&store, database, NULL), 0);
	sql("BEGIN IMMEDIATE");
	expect_eq(timerhub_store_commit_in(store, plain, &change, 1), -EXDEV);
	sql("COMMIT");
	expect_eq(sql_number("SELECT count(*) FROM timerhub_tasks"), 0);
	fixture_end();
}
