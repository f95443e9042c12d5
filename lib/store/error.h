/* SPDX-License-Identifier: MIT */
/* Converts errors of SQLite to negative errnos. */
#ifndef TIMERHUB_STORE_ERROR_H
#define TIMERHUB_STORE_ERROR_H

#include <errno.h>
#include <sqlite3.h>

/* Returns the errno of the last call on `db`, which has failed. */
int error_of(sqlite3 *db);

/* Runs statements that return no rows. Returns 0 or a negative errno. */
int run_sql(sqlite3 *db, const char *text);

#endif
