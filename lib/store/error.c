/* SPDX-License-Identifier: MIT */
#include "store/error.h"

#include <stddef.h>

static int error_of_open(sqlite3 *db)
{
	int number = sqlite3_system_errno(db);

	return number > 0 ? -number : -ENOENT;
}

/*
 * Returns the errno of an SQLITE_IOERR, which is not always the disk's fault: SQLite also returns
 * it if there is no memory for the -shm, or if a quota or the limit of a file's size is reached.
 */
static int error_of_io(sqlite3 *db)
{
	switch (sqlite3_extended_errcode(db)) {
	case SQLITE_IOERR_NOMEM:
		return -ENOMEM;
	case SQLITE_IOERR_SHMSIZE: /* SQLite forgets the errno */
		return -ENOSPC;
	case SQLITE_IOERR_WRITE:
	case SQLITE_IOERR_TRUNCATE:
		switch (sqlite3_system_errno(db)) {
		case ENOSPC:
		case EDQUOT:
		case EFBIG:
			return -ENOSPC;
		default:
			return -EIO;
		}
	default:
		return -EIO;
	}
}

int error_of(sqlite3 *db)
{
	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return error_of_open(db);
	/* the store's own statements compile, unless its tables are not as it made them */
	case SQLITE_ERROR:
	case SQLITE_SCHEMA:
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
		return -EBADMSG;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
		return -EINVAL;
	case SQLITE_TOOBIG:
		return -EMSGSIZE;
	case SQLITE_IOERR:
		return error_of_io(db);
	case SQLITE_INTERRUPT:
		return -ECANCELED;
	default:
		return -EIO;
	}
}

int run_sql(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : error_of(db);
}
