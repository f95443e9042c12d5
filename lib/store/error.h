/* SPDX-License-Identifier: MIT */
/* What an error of SQLite is as a negative errno. */
#ifndef TIMERHUB_STORE_ERROR_H
#define TIMERHUB_STORE_ERROR_H

#include <errno.h>
#include <sqlite3.h>

/* Of the last call on `db`, which failed. */
int error_of(sqlite3 *db);

/* Runs statements that return no rows. Returns 0 or a negative errno. */
int run_sql(sqlite3 *db, const char *text);

#endif
