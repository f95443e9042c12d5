/* SPDX-License-Identifier: MIT */
/* The calls that change tasks. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "base/options.h"
#include "store/store.h"
#undef timerhub_store_commit_in

#define SUBMITS_MAX 1024

/* ---- calls that wait until the change is on stable storage ---- */

/*
 * Frees key and data of the tasks that these changes have ended, or that have ended or been
 * delivered again before.
 */
static void answers_release(struct timerhub_store_change *changes, unsigned count, int result)
{
	for (unsigned i = 0; i < count; i++) {
		int own = changes[i].result;

		if (changes[i].op != STORE_TOUCH &&
		    (result == 0 || ((own == -ESTALE || own == -ENOENT) && own == result)))
			timerhub_store_release(NULL, changes[i].task);
	}
}

static int changes_do(struct timerhub_store *store, struct timerhub_store_change *changes,
                      unsigned count)
{
	struct work work = {
		.kind = WORK_CHANGES,
		.changes = changes,
		.count = count,
		.now_us = store_now_us(&store->wall),
		.deadline_ns = clock_monotonic_ns() + store->timeout_ns,
	};
	int result = writer_do(store, &work);

	answers_release(changes, count, result);
	return result;
}

static int change_do(struct timerhub_store *store, struct timerhub_store_change *change)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	if (result == 0)
		result = change_check(store, change);
	return result < 0 ? result : changes_do(store, change, 1);
}

int timerhub_store_put(struct timerhub_store *store, const struct timerhub_store_put *put,
                       uint64_t *ret_id)
{
	struct timerhub_store_put known = { .size = sizeof(known) };
	struct timerhub_store_change change;
	int result = put ? options_read(&known, sizeof(known), sizeof(known), put) : -EINVAL;

	if (result < 0)
		return result;
	change = (struct timerhub_store_change){
		.op = TIMERHUB_STORE_PUT,
		.flags = known.flags,
		.when_ns = known.when_ns,
		.interval_ns = known.interval_ns,
		.key = known.key,
		.data = known.data,
		.data_len = known.data_len,
	};
	result = change_do(store, &change);
	if (ret_id && (result == 0 || result == -EEXIST))
		*ret_id = change.id;
	return result;
}

int timerhub_store_cancel(struct timerhub_store *store, uint64_t id)
{
	return change_do(store,
	                 &(struct timerhub_store_change){ .op = TIMERHUB_STORE_CANCEL, .id = id });
}

int timerhub_store_cancel_key(struct timerhub_store *store, const char *key)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_CANCEL, .key = key };

	return key ? change_do(store, &change) : -EINVAL;
}

int timerhub_store_move(struct timerhub_store *store, uint64_t id, uint64_t when_ns, uint32_t flags)
{
	struct timerhub_store_change change = {
		.op = TIMERHUB_STORE_MOVE, .id = id, .when_ns = when_ns, .flags = flags
	};

	return change_do(store, &change);
}

int timerhub_store_move_key(struct timerhub_store *store, const char *key, uint64_t when_ns,
                            uint32_t flags)
{
	struct timerhub_store_change change = {
		.op = TIMERHUB_STORE_MOVE, .key = key, .when_ns = when_ns, .flags = flags
	};

	return key ? change_do(store, &change) : -EINVAL;
}

int timerhub_store_done(struct timerhub_store *store, struct timerhub_store_task *task)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_DONE, .task = task };

	return change_do(store, &change);
}

int timerhub_store_retry(struct timerhub_store *store, struct timerhub_store_task *task,
                         uint64_t delay_ns)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_RETRY,
		                                .task = task,
		                                .when_ns = delay_ns };

	return change_do(store, &change);
}

int timerhub_store_park(struct timerhub_store *store, struct timerhub_store_task *task,
                        uint32_t reason)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_PARK,
		                                .task = task,
		                                .reason = reason };

	return change_do(store, &change);
}

int timerhub_store_touch(struct timerhub_store *store, struct timerhub_store_task *task,
                         uint64_t lease_ns)
{
	struct timerhub_store_change change = { .op = STORE_TOUCH,
		                                .task = task,
		                                .when_ns = lease_ns };

	if (store && lease_ns == 0)
		change.when_ns = (uint64_t)store->lease_us * 1000;
	return change_do(store, &change);
}

void timerhub_store_release(struct timerhub_store *store, struct timerhub_store_task *task)
{
	(void)store;
	if (!task)
		return;
	free((void *)(uintptr_t)task->data);
	task->data = task->key = NULL;
}

int timerhub_store_commit(struct timerhub_store *store, struct timerhub_store_change *changes,
                          unsigned count)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	if (result == 0)
		result = changes_check(store, changes, count);
	return result < 0 ? result : changes_do(store, changes, count);
}

int timerhub_store_sync(struct timerhub_store *store)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	return result < 0 ? result : writer_sync_all(store);
}

/* ---- changes in a transaction of the caller's ---- */

/*
 * Makes the transaction of a caller hold the write lock of the store's file. Returns 0 or a
 * negative errno.
 */
static int caller_begin(const struct timerhub_store *store, sqlite3 *db)
{
	int result;

	if (sqlite3_get_autocommit(db) ||
	    !files_are_of(&store->files, sqlite3_db_filename(db, "main")))
		return -EINVAL;
	/* if another connection has committed since the read, SQLite lets this one write no more */
	if (sqlite3_txn_state(db, "main") == SQLITE_TXN_READ)
		return -EDEADLK;
	/*
	 * This changes nothing but takes the lock. A statement that reads first could get a
	 * snapshot that is old already.
	 */
	result = run_sql(db, "UPDATE main.timerhub_clock SET boot=boot WHERE 0");
	return result == -EBUSY ? -EAGAIN : result;
}

/* Makes the changes, and leaves no statement behind on the caller's connection. */
static int caller_make(struct timerhub_store *store, sqlite3 *db,
                       struct timerhub_store_change *changes, unsigned count)
{
	struct statements statements = { .db = db };
	sqlite3_int64 rowid = sqlite3_last_insert_rowid(db);
	int result = changes_make(store, &statements, store_now_us(&store->wall), changes, count);

	statements_fini(&statements);
	sqlite3_set_last_insert_rowid(db, rowid);
	if (sqlite3_get_autocommit(db))
		return -ECANCELED;
	for (unsigned i = 0; i < count && result == 0; i++)
		store_count(&store->counts.done[changes[i].op], 1);
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
	if (result == 0 && (store_has_failed(store) || !files_are_there(&store->files)))
		result = -EIO;
	if (result == 0)
		result = changes_check(store, changes, count);
	if (result == 0)
		result = caller_begin(store, db);
	if (result < 0)
		return result;
	if (changes_have_put(changes, count) && store_disk_is_low(store)) {
		store_count(&store->counts.disk_full, 1);
		return -ENOSPC;
	}
	return caller_make(store, db, changes, count);
}

int timerhub_store_commit_in(struct timerhub_store *store, struct sqlite3 *db,
                             struct timerhub_store_change *changes, unsigned count)
{
	return timerhub_store_commit_in_checked(store, db, changes, count,
	                                        sqlite3_libversion_number);
}

/* ---- submits, which do not wait ---- */

/* A submit is one block of memory with its changes, their keys and data. */
struct submit {
	struct work work;
	uint64_t tag;
	struct timerhub_store_change changes[];
};
_Static_assert(offsetof(struct submit, work) == 0, "completed_take() casts the work");

static const void *block_copy(char **block, const void *from, size_t bytes)
{
	void *copy = from ? memcpy(*block, from, bytes) : NULL;

	*block += bytes;
	return copy;
}

static struct submit *submit_copy(const struct timerhub_store_change *changes, unsigned count)
{
	size_t bytes = sizeof(struct submit) + count * sizeof(*changes);
	struct submit *submit;
	char *block;

	for (unsigned i = 0; i < count; i++)
		bytes += changes[i].data_len + (changes[i].key ? strlen(changes[i].key) + 1 : 0);
	submit = malloc(bytes);
	if (!submit)
		return NULL;
	submit->work = (struct work){
		.kind = WORK_CHANGES, .changes = submit->changes, .count = count, .is_submit = true
	};
	memcpy(submit->changes, changes, count * sizeof(*changes));
	block = (char *)(submit->changes + count);
	for (unsigned i = 0; i < count; i++) {
		const char *key = changes[i].key;

		submit->changes[i].data = block_copy(&block, changes[i].data, changes[i].data_len);
		submit->changes[i].key = block_copy(&block, key, key ? strlen(key) + 1 : 0);
	}
	return submit;
}

int timerhub_store_submit(struct timerhub_store *store, struct timerhub_store_change *changes,
                          unsigned count, uint64_t tag)
{
	CANCELLATION_HELD;
	struct submit *submit;
	int result = store_check(store);

	if (result == 0 && store_has_failed(store))
		result = -EIO;
	if (result == 0)
		result = changes_check(store, changes, count);
	if (result < 0)
		return result;
	/* relaxed: only a limit, and whoever exceeds it subtracts his 1 again */
	if (u32_fetch_add_relaxed(&store->synced.submits, 1) >= SUBMITS_MAX)
		result = -EAGAIN;
	submit = result == 0 ? submit_copy(changes, count) : NULL;
	if (!submit) {
		(void)u32_fetch_add_relaxed(&store->synced.submits, UINT32_MAX);
		return result < 0 ? result : -ENOMEM;
	}
	submit->tag = tag;
	submit->work.now_us = store_now_us(&store->wall);
	submit->work.deadline_ns = clock_monotonic_ns() + store->timeout_ns;
	writer_submit(store, &submit->work);
	return 0;
}

static struct submit *completed_take(struct timerhub_store *store)
{
	struct work *work;

	lock_take(&store->synced.lock);
	work = store->synced.completed;
	if (work) {
		store->synced.completed = work->next;
		if (!work->next)
			store->synced.last_completed = &store->synced.completed;
	} else if (store->synced.is_rung) {
		store->synced.is_rung = false;
		bell_clear(store->synced.fd);
	}
	lock_give(&store->synced.lock);
	return (struct submit *)work;
}

int timerhub_store_completions(struct timerhub_store *store, struct timerhub_store_completion *ret,
                               unsigned max)
{
	CANCELLATION_HELD;
	struct submit *submit;
	unsigned count = 0;
	int result = store_check(store);

	if (!ret || max == 0 || max > INT_MAX)
		return -EINVAL;
	if (result < 0)
		return result;
	while (count < max && (submit = completed_take(store))) {
		const struct timerhub_store_change *first = submit->changes;

		ret[count++] = (struct timerhub_store_completion){
			.tag = submit->tag,
			.id = first->task ? first->task->id : first->id,
			.result = submit->work.result,
		};
		answers_release(submit->changes, submit->work.count, submit->work.result);
		free(submit);
		(void)u32_fetch_add_relaxed(&store->synced.submits, UINT32_MAX);
	}
	return (int)count;
}

int timerhub_store_completion_fd(struct timerhub_store *store)
{
	int result = store_check(store);

	return result < 0 ? result : store->synced.fd;
}
