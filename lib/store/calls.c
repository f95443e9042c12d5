/* SPDX-License-Identifier: MIT */
/*
 * The calls that change tasks, and what the changes do in the database. Each change writes by one
 * statement, so it is made as a whole or not at all. Several changes are made as a whole by a
 * savepoint. If a statement finds no row to change, another statement finds out why.
 */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "base/options.h"
#include "store/store.h"
#undef timerhub_store_commit_in

#define SUBMITS_MAX 1024

/* ---- what a caller may ask for ---- */

static bool key_is_valid(const char *key)
{
	/* the least character that UTF-8 encodes with 0, 1, 2 or 3 bytes after its first */
	static const uint32_t least[] = { 1, 0x80, 0x800, 0x10000 };
	size_t length = strnlen(key, TIMERHUB_STORE_KEY_MAX + 1), at = 0;

	while (at < length) {
		unsigned char lead = (unsigned char)key[at++];
		unsigned follow = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
		uint32_t character = follow == 0 ? lead : lead & (0x3fu >> follow);

		if (lead >= 0x80 && (lead < 0xc0 || lead > 0xf4))
			return false;
		for (unsigned i = 0; i < follow; i++, at++) {
			if ((key[at] & 0xc0) != 0x80) /* also at the end of the text */
				return false;
			character = character << 6 | ((unsigned char)key[at] & 0x3f);
		}
		if (character < least[follow] || character > 0x10ffff ||
		    (character >= 0xd800 && character < 0xe000))
			return false;
	}
	return length > 0 && length <= TIMERHUB_STORE_KEY_MAX;
}

/*
 * Stores the due time of a change, in us, or 0 if it has none. Returns 0. Returns -ERANGE if the
 * table would refuse the time.
 */
static int due_of(int64_t *ret_us, const struct timerhub_store_change *change, int64_t now_us)
{
	bool has_time = change->op == TIMERHUB_STORE_PUT || change->op == TIMERHUB_STORE_MOVE;
	int64_t us = store_us(change->when_ns);

	*ret_us = 0;
	if ((has_time && change->when_ns == TIMERHUB_NEVER) ||
	    (!has_time && change->op != TIMERHUB_STORE_RETRY))
		return 0;
	if (!(change->flags & TIMERHUB_ABSOLUTE))
		us += now_us;
	*ret_us = us;
	return us < DUE_MIN_US || us > DUE_MAX_US ? -ERANGE : 0;
}

static int change_check(const struct timerhub_store *store,
                        const struct timerhub_store_change *change, int64_t now_us)
{
	bool is_put = change->op == TIMERHUB_STORE_PUT,
	     is_answer = change->op >= TIMERHUB_STORE_DONE;
	uint32_t flags = is_put ? TIMERHUB_ABSOLUTE | TIMERHUB_STORE_REPLACE : 0;
	int64_t due_us;

	if (change->op == TIMERHUB_STORE_MOVE)
		flags = TIMERHUB_ABSOLUTE;
	for (unsigned i = 0; i < sizeof(change->reserved) / sizeof(*change->reserved); i++)
		if (change->reserved[i] != 0)
			return -EINVAL;
	if (change->op < TIMERHUB_STORE_PUT || (change->flags & ~flags) != 0 ||
	    is_answer != (change->task != NULL) ||
	    (change->key && (is_answer || !key_is_valid(change->key))) ||
	    (change->op != TIMERHUB_STORE_PARK && change->reason != 0) ||
	    (!is_put && (change->data || change->data_len > 0 || change->interval_ns > 0)) ||
	    (!change->data && change->data_len > 0) ||
	    ((change->flags & TIMERHUB_STORE_REPLACE) && !change->key))
		return -EINVAL;
	return change->data_len > store->data_max ? -EMSGSIZE : due_of(&due_us, change, now_us);
}

/*
 * Checks the arguments of changes. The first wrong one gets its error in `result`, which is also
 * returned. An `op` above `last_op` is wrong.
 */
static int changes_check(const struct timerhub_store *store, struct timerhub_store_change *changes,
                         unsigned count, uint32_t last_op)
{
	int result = store_check(store);

	if (result < 0)
		return result;
	if (!changes || count == 0 || count > TIMERHUB_STORE_CHANGES_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++)
		changes[i].result = 0;
	for (unsigned i = 0; i < count && result == 0; i++) {
		result = changes[i].op > last_op
		                 ? -EINVAL
		                 : change_check(store, &changes[i], store_now_us(&store->wall));
		changes[i].result = result;
	}
	return result == 0 && store_has_failed(store) ? -EIO : result;
}

/* ---- in the transaction ---- */

/*
 * Returns by how many periods a task that is done moves on. They are fewer than when it was taken
 * if the wall clock was ahead then, and has been set back.
 */
static int64_t periods_passed(const struct timerhub_store_task *task, int64_t now_us)
{
	int64_t passed =
		store_periods((int64_t)(task->due_ns / 1000), store_us(task->interval_ns), now_us);

	return task->periods < (uint64_t)passed ? (int64_t)task->periods : passed;
}

static int change_make(const struct timerhub_store *store, struct making *making,
                       struct timerhub_store_change *change, int64_t now_us)
{
	struct timerhub_store_task *task = change->task;
	bool is_put = change->op == TIMERHUB_STORE_PUT;
	enum statement which = (enum statement)change->op;
	struct values values = {
		.id = change->key || is_put ? 0 : (int64_t)change->id,
		.queue = store->queue,
		.key = change->key,
		.interval_us = store_us(change->interval_ns),
		.data = change->data,
		.data_len = change->data_len,
		.lease = LEASE_BASE_US + store_boot_us(store),
		.number = change->reason,
	};
	int64_t id = 0;
	int result = due_of(&values.due_us, change, now_us), found;

	if (result < 0)
		return result;
	if (task) {
		values.id = (int64_t)task->id;
		values.queue = NULL; /* a handle can also answer tasks of another queue */
		values.claim = (int64_t)task->delivery;
	}
	if (change->op == TIMERHUB_STORE_DONE && task->interval_ns > 0) {
		which = DO_DONE_PERIOD;
		values.number = periods_passed(task, now_us);
	} else if (change->op == STORE_TOUCH) {
		values.lease = lease_even(values.lease + store_lease_us(change->when_ns));
	}
	making->is_due |= values.due_us != 0 && values.due_us <= now_us;
	result = statement_run(making->statements, which, &values, NULL);
	if (result > 0 && is_put)
		change->id = (uint64_t)sqlite3_last_insert_rowid(making->statements->db);
	if (result > 0 && change->op == STORE_TOUCH)
		task->lease_end_ns =
			(uint64_t)(values.lease - LEASE_BASE_US + store->shift_us) * 1000;
	if (result != 0)
		return result < 0 ? result : 0;
	/*
	 * The INSERT of a put adds no row if a task with the same key exists.
	 * TIMERHUB_STORE_REPLACE says to overwrite that task.
	 */
	if (change->flags & TIMERHUB_STORE_REPLACE)
		result = statement_run(making->statements, DO_REPLACE, &values, NULL);
	found = result < 0 ? result : statement_run(making->statements, DO_FIND, &values, &id);
	if (is_put)
		change->id = (uint64_t)id;
	if (found <= 0)
		return found < 0 ? found : is_put ? -EBADMSG : -ENOENT;
	return result > 0 ? 0 : is_put ? -EEXIST : task ? -ESTALE : -EBUSY;
}

/* Returns true if the disk is too full for a put, and at least one of the changes is a put. */
static bool changes_lack_room(struct timerhub_store *store, struct making *making,
                              const struct timerhub_store_change *changes, unsigned count)
{
	uint64_t wal_bytes;
	unsigned i = 0;

	while (i < count && changes[i].op != TIMERHUB_STORE_PUT)
		i++;
	if (i < count && making->is_low < 0) {
		lock_take(&store->shared.lock);
		wal_bytes = store->keeper.wal_bytes;
		lock_give(&store->shared.lock);
		making->is_low = files_disk_is_low(&store->files, wal_bytes);
	}
	return i < count && making->is_low;
}

int changes_make(struct timerhub_store *store, struct making *making, int64_t now_us,
                 struct timerhub_store_change *changes, unsigned count)
{
	sqlite3 *db = making->statements->db;
	unsigned made = 0;
	int result = 0;

	making->is_refused = changes_lack_room(store, making, changes, count);
	if (making->is_refused)
		return -ENOSPC;
	for (unsigned i = 0; i < count; i++)
		changes[i].result = 0;
	if (count > 1)
		result = savepoint_begin(making->statements);
	if (result < 0) /* -EBUSY: the caller has a statement that writes and is not reset */
		return result == -EBUSY ? -EINVAL : result;
	for (; made < count && result == 0; made++)
		result = changes[made].result = change_make(store, making, &changes[made], now_us);
	for (unsigned i = 0; result < 0 && i + 1 < made; i++)
		if (changes[i].op == TIMERHUB_STORE_PUT)
			changes[i].id = 0;
	if (count == 1 || sqlite3_get_autocommit(db))
		return result;
	return savepoint_end(making->statements, result);
}

void changes_count(struct timerhub_store_stats *counts, const struct timerhub_store_change *changes,
                   unsigned count, int result)
{
	uint64_t touched = 0;
	uint64_t *const counters[] = {
		[TIMERHUB_STORE_PUT] = &counts->put,
		[TIMERHUB_STORE_CANCEL] = &counts->cancelled,
		[TIMERHUB_STORE_MOVE] = &counts->moved,
		[TIMERHUB_STORE_DONE] = &counts->done,
		[TIMERHUB_STORE_RETRY] = &counts->retried,
		[TIMERHUB_STORE_PARK] = &counts->retried,
		[STORE_TOUCH] = &touched,
	};

	for (unsigned i = 0; i < count && result == 0; i++)
		++*counters[changes[i].op];
	counts->disk_full += result == -ENOSPC;
}

/* ---- calls that wait until the change is on stable storage ---- */

/*
 * Frees the key and data of each task that a change has ended, given back or parked. Also frees
 * them if the change has failed because the task had ended or had been delivered again.
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

static struct work work_of_changes(const struct timerhub_store *store,
                                   struct timerhub_store_change *changes, unsigned count)
{
	return (struct work){
		.changes = changes,
		.count = count,
		.now_us = store_now_us(&store->wall),
		.deadline_ns = clock_monotonic_ns() + store->timeout_ns,
	};
}

/*
 * Makes `count` changes in one transaction, and returns when it has ended. Returns -EINVAL if a
 * change has an op above `last_op`.
 */
static int changes_do(struct timerhub_store *store, struct timerhub_store_change *changes,
                      unsigned count, uint32_t last_op)
{
	CANCELLATION_HELD;
	int result = changes_check(store, changes, count, last_op);
	struct work work;

	if (result < 0)
		return result;
	work = work_of_changes(store, changes, count);
	result = writer_do(store, &work);
	answers_release(changes, count, result);
	return result;
}

int timerhub_store_commit(struct timerhub_store *store, struct timerhub_store_change *changes,
                          unsigned count)
{
	return changes_do(store, changes, count, TIMERHUB_STORE_PARK);
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
	result = changes_do(store, &change, 1, TIMERHUB_STORE_PUT);
	if (ret_id && (result == 0 || result == -EEXIST))
		*ret_id = change.id;
	return result;
}

/* Cancels or moves the task that has the key, or if `key` is NULL, the task that has the id. */
static int task_change(struct timerhub_store *store, enum timerhub_store_op op, uint64_t id,
                       const char *key, uint64_t when_ns, uint32_t flags)
{
	struct timerhub_store_change change = {
		.op = op, .id = id, .key = key, .when_ns = when_ns, .flags = flags
	};

	return changes_do(store, &change, 1, op);
}

int timerhub_store_cancel(struct timerhub_store *store, uint64_t id)
{
	return task_change(store, TIMERHUB_STORE_CANCEL, id, NULL, 0, 0);
}

int timerhub_store_cancel_key(struct timerhub_store *store, const char *key)
{
	return key ? task_change(store, TIMERHUB_STORE_CANCEL, 0, key, 0, 0) : -EINVAL;
}

int timerhub_store_move(struct timerhub_store *store, uint64_t id, uint64_t when_ns, uint32_t flags)
{
	return task_change(store, TIMERHUB_STORE_MOVE, id, NULL, when_ns, flags);
}

int timerhub_store_move_key(struct timerhub_store *store, const char *key, uint64_t when_ns,
                            uint32_t flags)
{
	return key ? task_change(store, TIMERHUB_STORE_MOVE, 0, key, when_ns, flags) : -EINVAL;
}

static int task_answer(struct timerhub_store *store, uint32_t op, struct timerhub_store_task *task,
                       uint64_t when_ns, uint32_t reason)
{
	struct timerhub_store_change change = {
		.op = op, .task = task, .when_ns = when_ns, .reason = reason
	};

	return changes_do(store, &change, 1, op);
}

int timerhub_store_done(struct timerhub_store *store, struct timerhub_store_task *task)
{
	return task_answer(store, TIMERHUB_STORE_DONE, task, 0, 0);
}

int timerhub_store_retry(struct timerhub_store *store, struct timerhub_store_task *task,
                         uint64_t delay_ns)
{
	return task_answer(store, TIMERHUB_STORE_RETRY, task, delay_ns, 0);
}

int timerhub_store_park(struct timerhub_store *store, struct timerhub_store_task *task,
                        uint32_t reason)
{
	return task_answer(store, TIMERHUB_STORE_PARK, task, 0, reason);
}

int timerhub_store_touch(struct timerhub_store *store, struct timerhub_store_task *task,
                         uint64_t lease_ns)
{
	if (store && lease_ns == 0)
		lease_ns = (uint64_t)store->lease_us * 1000;
	return task_answer(store, STORE_TOUCH, task, lease_ns, 0);
}

void timerhub_store_release(struct timerhub_store *store, struct timerhub_store_task *task)
{
	(void)store;
	if (!task)
		return;
	free((void *)(uintptr_t)task->data);
	task->data = task->key = NULL;
}

int timerhub_store_sync(struct timerhub_store *store)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	if (result == 0)
		result = store_find_files(store);
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
	/* Refuse a transaction that has already read, because it may not be able to write. */
	if (sqlite3_txn_state(db, "main") == SQLITE_TXN_READ)
		return -EDEADLK;
	/*
	 * This UPDATE changes no row, but takes the write lock. A statement that reads first could
	 * get an old snapshot, and then SQLite would refuse to write.
	 */
	result = run_sql(db, "UPDATE main.timerhub_clock SET boot=boot WHERE 0");
	return result == -EBUSY ? -EAGAIN : result;
}

int timerhub_store_commit_in_checked(struct timerhub_store *store, struct sqlite3 *db,
                                     struct timerhub_store_change *changes, unsigned count,
                                     int (*sqlite)(void))
{
	CANCELLATION_HELD;
	/* prepare statements for this call only, so that none is left on the caller's connection */
	struct statements statements = { .db = db };
	struct making making = { .statements = &statements, .is_low = -1 };
	sqlite3_int64 rowid;
	int result = db ? store_check(store) : -EINVAL;

	if (result == 0 && sqlite != sqlite3_libversion_number)
		result = -EXDEV;
	if (result == 0 && !files_are_there(&store->files))
		result = -EIO;
	if (result == 0)
		result = changes_check(store, changes, count, TIMERHUB_STORE_PARK);
	if (result == 0)
		result = caller_begin(store, db);
	if (result < 0)
		return result;
	rowid = sqlite3_last_insert_rowid(db);
	result = changes_make(store, &making, store_now_us(&store->wall), changes, count);
	statements_fini(&statements);
	sqlite3_set_last_insert_rowid(db, rowid);
	if (sqlite3_get_autocommit(db))
		return -ECANCELED;
	lock_take(&store->shared.lock);
	changes_count(&store->shared.counts, changes, count, result);
	lock_give(&store->shared.lock);
	return result;
}

int timerhub_store_commit_in(struct timerhub_store *store, struct sqlite3 *db,
                             struct timerhub_store_change *changes, unsigned count)
{
	return timerhub_store_commit_in_checked(store, db, changes, count,
	                                        sqlite3_libversion_number);
}

/* ---- submits, which do not wait ---- */

/* A submit is one block of memory that holds a work item, its changes, and their keys and data. */
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

static struct submit *submit_copy(const struct timerhub_store *store,
                                  const struct timerhub_store_change *changes, unsigned count)
{
	size_t bytes = sizeof(struct submit) + count * sizeof(*changes);
	struct submit *submit;
	char *block;

	for (unsigned i = 0; i < count; i++)
		bytes += changes[i].data_len + (changes[i].key ? strlen(changes[i].key) + 1 : 0);
	submit = malloc(bytes);
	if (!submit)
		return NULL;
	submit->work = work_of_changes(store, submit->changes, count);
	submit->work.is_submit = true;
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
	int result = changes_check(store, changes, count, TIMERHUB_STORE_PARK);

	if (result < 0)
		return result;
	/*
	 * Relaxed, because the number is only compared with a limit. If the limit is reached, the 1
	 * is subtracted again below.
	 */
	if (u32_fetch_add_relaxed(&store->synced.submits, 1) >= SUBMITS_MAX)
		result = -EAGAIN;
	submit = result == 0 ? submit_copy(store, changes, count) : NULL;
	if (!submit) {
		(void)u32_fetch_add_relaxed(&store->synced.submits, UINT32_MAX);
		return result < 0 ? result : -ENOMEM;
	}
	submit->tag = tag;
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
