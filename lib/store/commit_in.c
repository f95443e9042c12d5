/* SPDX-License-Identifier: MIT */
/*
 * Changes within a transaction of the caller's, on his connection. No statement of ours stays on
 * it.
 */
#include "base/cancellation.h"
#include "store/change.h"
#include "store/error.h"
#undef timerhub_store_commit_in

/*
 * Makes sure that the connection has the write lock of the store's file. Returns 0 or a negative
 * errno.
 */
static int caller_begin(const struct timerhub_store *store, sqlite3 *db)
{
	int result;

	if (sqlite3_get_autocommit(db) ||
	    !files_are_of(&store->files, sqlite3_db_filename(db, "main")))
		return -EINVAL;
	switch (sqlite3_txn_state(db, "main")) {
	case SQLITE_TXN_WRITE:
		return 0;
	case SQLITE_TXN_READ:
		/*
		 * somebody else may have committed since it read, and then SQLite refuses to let it
		 * write
		 */
		return -EDEADLK;
	default:
		/*
		 * this writes nothing but takes the lock; a statement that reads first could get an
		 * old snapshot, too
		 */
		result = run_sql(db, "UPDATE main.timerhub_clock SET boot=boot WHERE 0");
		return result == -EBUSY ? -EAGAIN : result;
	}
}

static bool caller_is_refused(struct timerhub_store *store,
                              const struct timerhub_store_change *changes, unsigned count)
{
	if (!changes_have_put(changes, count) || !store_disk_is_low(store))
		return false;
	(void)u64_fetch_add_relaxed(&store->counts.disk_full, 1);
	return true;
}

/* A savepoint even for one change, because the caller's transaction goes on after an error. */
static int caller_make(struct timerhub_store *store, sqlite3 *db,
                       struct timerhub_store_change *changes, unsigned count)
{
	struct statements statements = { .db = db };
	sqlite3_int64 rowid = sqlite3_last_insert_rowid(db);
	struct changing changing;
	int result;

	changing_init(&changing, store, &statements);
	result = changes_make(&changing, changes, count);
	statements_fini(&statements);
	sqlite3_set_last_insert_rowid(db, rowid);
	if (sqlite3_get_autocommit(db))
		return -ECANCELED;
	for (unsigned i = 0; i < count && result == 0; i++)
		(void)u64_fetch_add_relaxed(&store->counts.done[changes[i].op], 1);
	return result;
}

int timerhub_store_commit_in_checked(struct timerhub_store *store, struct sqlite3 *db,
                                     struct timerhub_store_change *changes, unsigned count,
                                     int (*sqlite)(void))
{
	CANCELLATION_HELD;
	int result = store_check(store);

	if (!db)
		return -EINVAL;
	if (result == 0 && sqlite != sqlite3_libversion_number)
		result = -EXDEV;
	if (result == 0 && (u32_load_relaxed(&store->failed) != 0 || /* relaxed: see writer.c */
	                    !files_are_there(&store->files)))
		result = -EIO;
	if (result == 0)
		result = changes_check(store, changes, count);
	if (result == 0)
		result = caller_begin(store, db);
	if (result == 0 && caller_is_refused(store, changes, count))
		result = -ENOSPC;
	return result < 0 ? result : caller_make(store, db, changes, count);
}

int timerhub_store_commit_in(struct timerhub_store *store, struct sqlite3 *db,
                             struct timerhub_store_change *changes, unsigned count)
{
	return timerhub_store_commit_in_checked(store, db, changes, count,
	                                        sqlite3_libversion_number);
}
