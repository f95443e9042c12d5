/* SPDX-License-Identifier: MIT */
/*
 * What the changes of tasks do in the database. Each change writes by one statement, so by itself
 * it is made whole or not at all. Several changes are made in a savepoint. If a statement finds no
 * row to change, another one asks why.
 */
#include <string.h>

#include "store/store.h"

/* ---- what a caller may ask for ---- */

static bool key_is_valid(const char *key)
{
	/* the least character that needs one, two or three bytes after its first */
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

/* Stores the due time that a change gives its task; 0 means never. Returns 0 or -ERANGE. */
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

int change_check(const struct timerhub_store *store, const struct timerhub_store_change *change)
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
	if (change->op < TIMERHUB_STORE_PUT || change->op > STORE_TOUCH ||
	    (change->flags & ~flags) != 0 || is_answer != (change->task != NULL) ||
	    (change->key && (is_answer || !key_is_valid(change->key))) ||
	    (change->op != TIMERHUB_STORE_PARK && change->reason != 0) ||
	    (!is_put && (change->data || change->data_len > 0 || change->interval_ns > 0)) ||
	    (!change->data && change->data_len > 0) ||
	    ((change->flags & TIMERHUB_STORE_REPLACE) && !change->key))
		return -EINVAL;
	if (change->data_len > store->data_max)
		return -EMSGSIZE;
	return due_of(&due_us, change, store_now_us(&store->wall));
}

int changes_check(const struct timerhub_store *store, struct timerhub_store_change *changes,
                  unsigned count)
{
	int result = 0;

	if (!changes || count == 0 || count > TIMERHUB_STORE_CHANGES_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++)
		changes[i].result = 0;
	for (unsigned i = 0; i < count && result == 0; i++) {
		result = changes[i].op == STORE_TOUCH ? -EINVAL : change_check(store, &changes[i]);
		changes[i].result = result;
	}
	return result;
}

bool change_is_due(const struct timerhub_store_change *change, int64_t now_us)
{
	int64_t due_us;

	return due_of(&due_us, change, now_us) == 0 && due_us != 0 && due_us <= now_us;
}

bool changes_have_put(const struct timerhub_store_change *changes, unsigned count)
{
	unsigned i = 0;

	while (i < count && changes[i].op != TIMERHUB_STORE_PUT)
		i++;
	return i < count;
}

/* ---- in the transaction ---- */

static int change_make(struct statements *statements, const struct timerhub_store *store,
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
		.lease = LEASE_BASE_US + store_now_us(&store->since_boot),
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
		values.number = task->periods < INT64_MAX ? (int64_t)task->periods : INT64_MAX;
	} else if (change->op == STORE_TOUCH) {
		values.lease += store_lease_us(change->when_ns);
	}
	result = statement_run(statements, which, &values);
	if (result > 0 && is_put)
		change->id = (uint64_t)sqlite3_last_insert_rowid(statements->db);
	if (result > 0 && change->op == STORE_TOUCH)
		task->lease_end_ns = (uint64_t)(values.lease - LEASE_BASE_US) * 1000;
	if (result != 0)
		return result < 0 ? result : 0;
	/* no row was changed, so find out whether there is such a task */
	if (change->flags & TIMERHUB_STORE_REPLACE)
		result = statement_run(statements, DO_REPLACE, &values);
	found = result < 0 ? result : statement_ask(statements, DO_FIND, &values, &id);
	if (is_put)
		change->id = (uint64_t)id;
	if (found <= 0)
		return found < 0 ? found : is_put ? -EBADMSG : -ENOENT;
	return result > 0 ? 0 : is_put ? -EEXIST : task ? -ESTALE : -EBUSY;
}

int changes_make(const struct timerhub_store *store, struct statements *statements, int64_t now_us,
                 struct timerhub_store_change *changes, unsigned count)
{
	int result = 0;
	unsigned made = 0;

	for (unsigned i = 0; i < count; i++)
		changes[i].result = 0;
	if (count > 1)
		result = run_sql(statements->db, "SAVEPOINT timerhub_changes");
	for (; made < count && result == 0; made++)
		result = changes[made].result =
			change_make(statements, store, &changes[made], now_us);
	for (unsigned i = 0; result < 0 && i + 1 < made; i++)
		if (changes[i].op == TIMERHUB_STORE_PUT)
			changes[i].id = 0;
	if (count == 1 || sqlite3_get_autocommit(statements->db))
		return result;
	if (result < 0)
		(void)run_sql(statements->db, "ROLLBACK TO timerhub_changes");
	return run_sql(statements->db, "RELEASE timerhub_changes") < 0 && result == 0 ? -EIO
	                                                                              : result;
}
