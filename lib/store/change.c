/* SPDX-License-Identifier: MIT */
/*
 * Each change is one statement that writes, so it is made whole or not at all by itself; several
 * stand in a savepoint. A statement that finds no row to change is followed by one that asks why.
 */
#include "store/change.h"

#include <string.h>

#include "store/schema.h"

void changing_init(struct changing *changing, const struct timerhub_store *store,
                   struct statements *statements)
{
	*changing = (struct changing){
		.statements = statements,
		.queue = store->queue,
		.now_us = store_now_us(&store->wall),
		.lease_now = LEASE_BASE_US + store_now_us(&store->since_boot),
	};
}

/* ---- what a caller may ask for ---- */

/*
 * Returns how many bytes the character at the beginning of a text has, or 0 if it is no UTF-8. The
 * text ends with a NUL.
 */
static unsigned utf8_length(const unsigned char *text)
{
	unsigned length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : 3;

	if (text[0] >= 0xf0)
		length = text[0] < 0xf5 ? 4 : 0;
	for (unsigned i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* encoded longer than necessary, half of a surrogate pair, or beyond the last character */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

static bool key_is_valid(const char *key)
{
	size_t length = strnlen(key, TIMERHUB_STORE_KEY_MAX + 1), at = 0;

	while (at < length && length <= TIMERHUB_STORE_KEY_MAX) {
		unsigned bytes = utf8_length((const unsigned char *)key + at);

		if (bytes == 0)
			return false;
		at += bytes;
	}
	return length > 0 && at == length;
}

/* Stores when a change makes its task due; 0 means never. Returns 0 or -ERANGE. */
static int due_of(int64_t *ret_us, const struct timerhub_store_change *change, int64_t now_us)
{
	int64_t us = store_us(change->when_ns);

	*ret_us = 0;
	if (change->when_ns == TIMERHUB_NEVER && change->op != TIMERHUB_STORE_RETRY)
		return 0;
	if (!(change->flags & TIMERHUB_ABSOLUTE))
		us += now_us;
	*ret_us = us;
	return us < DUE_MIN_US || us > DUE_MAX_US ? -ERANGE : 0;
}

static int change_check_put(const struct timerhub_store *store,
                            const struct timerhub_store_change *change)
{
	const uint32_t flags = TIMERHUB_ABSOLUTE | TIMERHUB_STORE_REPLACE;

	if ((change->flags & ~flags) != 0 || (!change->data && change->data_len > 0) ||
	    ((change->flags & TIMERHUB_STORE_REPLACE) && !change->key))
		return -EINVAL;
	return change->data_len > store->data_max ? -EMSGSIZE : 0;
}

int change_check(const struct timerhub_store *store, const struct timerhub_store_change *change)
{
	bool is_answer = change_is_answer(change);
	int64_t due_us;
	int result = 0;

	for (unsigned i = 0; i < sizeof(change->reserved) / sizeof(*change->reserved); i++)
		if (change->reserved[i] != 0)
			return -EINVAL;
	if (change->op < TIMERHUB_STORE_PUT || change->op > STORE_TOUCH ||
	    is_answer != (change->task != NULL) || (change->key && !key_is_valid(change->key)) ||
	    (is_answer && (change->key || change->flags != 0)) ||
	    (change->op != TIMERHUB_STORE_PARK && change->reason != 0) ||
	    (change->op != TIMERHUB_STORE_PUT &&
	     (change->data || change->data_len > 0 || change->interval_ns > 0)))
		return -EINVAL;
	if (change->op == TIMERHUB_STORE_PUT)
		result = change_check_put(store, change);
	else if ((change->flags & ~TIMERHUB_ABSOLUTE) != 0 ||
	         (change->op == TIMERHUB_STORE_CANCEL && change->flags != 0))
		result = -EINVAL;
	if (result == 0 && change->op != STORE_TOUCH && change->op != TIMERHUB_STORE_CANCEL &&
	    change->op != TIMERHUB_STORE_DONE && change->op != TIMERHUB_STORE_PARK)
		result = due_of(&due_us, change, store_now_us(&store->wall));
	return result;
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

bool changes_have_put(const struct timerhub_store_change *changes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (changes[i].op == TIMERHUB_STORE_PUT)
			return true;
	return false;
}

/* ---- in the transaction ---- */

static void bind_due(sqlite3_stmt *statement, int at, int64_t due_us)
{
	if (due_us == 0)
		(void)sqlite3_bind_null(statement, at);
	else
		(void)sqlite3_bind_int64(statement, at, due_us);
}

static void bind_interval(sqlite3_stmt *statement, int at, uint64_t interval_ns)
{
	if (interval_ns == 0)
		(void)sqlite3_bind_null(statement, at);
	else
		(void)sqlite3_bind_int64(statement, at, store_us(interval_ns));
}

static int bind_data(sqlite3_stmt *statement, int at, const struct timerhub_store_change *change)
{
	/*
	 * SQLite copies nothing if it gets no destructor; the statement is unbound before its next
	 * use
	 */
	int result = sqlite3_bind_blob64(statement, at, change->data ? change->data : "",
	                                 change->data_len, SQLITE_STATIC);

	return result == SQLITE_TOOBIG ? -EMSGSIZE : 0;
}

/* Stores the id of the queue's task with the key. Returns 1, 0, or a negative errno. */
static int find_key(struct changing *changing, const char *key, int64_t *ret_id)
{
	sqlite3_stmt *statement;
	int result = statement_get(changing->statements, DO_FIND_KEY, &statement);

	if (result < 0)
		return result;
	(void)sqlite3_bind_text(statement, 1, changing->queue, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(statement, 2, key, -1, SQLITE_STATIC);
	return statement_ask(changing->statements, statement, ret_id);
}

/* Finds out why a statement found no row. Returns -ENOENT, or `otherwise` if the task exists. */
static int why_none(struct changing *changing, int64_t id, const char *queue, int otherwise)
{
	sqlite3_stmt *statement;
	int64_t delivery;
	int result = statement_get(changing->statements, DO_FIND, &statement);

	if (result < 0)
		return result;
	(void)sqlite3_bind_int64(statement, 1, id);
	(void)sqlite3_bind_text(statement, 2, queue, -1, SQLITE_STATIC);
	result = statement_ask(changing->statements, statement, &delivery);
	if (result < 0)
		return result;
	return result == 0 ? -ENOENT : otherwise;
}

static int make_replace(struct changing *changing, struct timerhub_store_change *change,
                        int64_t due_us)
{
	sqlite3_stmt *statement;
	int result = statement_get(changing->statements, DO_REPLACE, &statement);

	if (result < 0)
		return result;
	(void)sqlite3_bind_int64(statement, 1, (int64_t)change->id);
	(void)sqlite3_bind_int64(statement, 2, changing->lease_now);
	bind_due(statement, 3, due_us);
	bind_interval(statement, 4, change->interval_ns);
	result = bind_data(statement, 5, change);
	if (result == 0)
		result = statement_run(changing->statements, statement);
	return result == 0 ? -EEXIST : result;
}

static int make_put(struct changing *changing, struct timerhub_store_change *change)
{
	sqlite3_stmt *statement;
	int64_t due_us, id = 0;
	int result = due_of(&due_us, change, changing->now_us);

	if (result == 0)
		result = statement_get(changing->statements, DO_PUT, &statement);
	if (result < 0)
		return result;
	(void)sqlite3_bind_text(statement, 1, changing->queue, -1, SQLITE_STATIC);
	bind_due(statement, 2, due_us);
	(void)sqlite3_bind_text(statement, 3, change->key, -1, SQLITE_STATIC);
	bind_interval(statement, 4, change->interval_ns);
	result = bind_data(statement, 5, change);
	if (result == 0)
		result = statement_run(changing->statements, statement);
	if (result > 0)
		change->id = (uint64_t)sqlite3_last_insert_rowid(changing->statements->db);
	if (result != 0)
		return result;
	result = find_key(changing, change->key, &id);
	change->id = (uint64_t)id;
	if (result <= 0)
		return result < 0 ? result : -EBADMSG;
	if (!(change->flags & TIMERHUB_STORE_REPLACE))
		return -EEXIST;
	return make_replace(changing, change, due_us);
}

/* Makes a cancel or move, of a task that no worker has. */
static int make_by_id(struct changing *changing, struct timerhub_store_change *change)
{
	bool moves = change->op == TIMERHUB_STORE_MOVE;
	int64_t due_us = 0, id = change->id <= INT64_MAX ? (int64_t)change->id : 0;
	sqlite3_stmt *statement;
	int result = moves ? due_of(&due_us, change, changing->now_us) : 0;

	if (result == 0 && change->key) {
		result = find_key(changing, change->key, &id);
		if (result == 0)
			return -ENOENT;
	}
	if (result >= 0)
		result = statement_get(changing->statements, moves ? DO_MOVE : DO_CANCEL,
		                       &statement);
	if (result < 0)
		return result;
	(void)sqlite3_bind_int64(statement, 1, id);
	(void)sqlite3_bind_int64(statement, 2, changing->lease_now);
	(void)sqlite3_bind_text(statement, 3, changing->queue, -1, SQLITE_STATIC);
	if (moves)
		bind_due(statement, 4, due_us);
	result = statement_run(changing->statements, statement);
	return result == 0 ? why_none(changing, id, changing->queue, -EBUSY) : result;
}

/* Makes a done, retry, park or touch, if its delivery is the task's current one. */
static int make_answer(struct changing *changing, struct timerhub_store_change *change)
{
	const struct timerhub_store_task *task = change->task;
	int64_t numbers[] = { (int64_t)task->id, (int64_t)task->delivery, 0 }, due_us;
	enum statement which = DO_DONE;
	int result = 0;

	if (task->id > INT64_MAX || task->delivery > INT64_MAX)
		return -ENOENT;
	switch (change->op) {
	case TIMERHUB_STORE_DONE:
		which = task->interval_ns > 0 ? DO_DONE_PERIOD : DO_DONE;
		numbers[2] = task->periods < INT64_MAX ? (int64_t)task->periods : INT64_MAX;
		break;
	case TIMERHUB_STORE_RETRY:
		which = DO_RETRY;
		result = due_of(&due_us, change, changing->now_us);
		numbers[2] = due_us;
		break;
	case TIMERHUB_STORE_PARK:
		which = DO_PARK;
		numbers[2] = change->reason;
		break;
	default:
		which = DO_TOUCH;
		numbers[2] = store_us(change->when_ns);
		if (numbers[2] > STORE_LENGTH_MAX_US)
			numbers[2] = STORE_LENGTH_MAX_US;
		numbers[2] += changing->lease_now;
	}
	if (result == 0)
		result = statement_run_numbers(changing->statements, which,
		                               which == DO_DONE ? 2 : 3, numbers);
	if (result == 0)
		return why_none(changing, numbers[0], NULL, -ESTALE);
	if (result > 0 && which == DO_TOUCH)
		change->task->lease_end_ns = (uint64_t)(numbers[2] - LEASE_BASE_US) * 1000;
	return result;
}

static int change_make(struct changing *changing, struct timerhub_store_change *change)
{
	int result;

	if (change->op == TIMERHUB_STORE_PUT)
		result = make_put(changing, change);
	else if (change_is_answer(change))
		result = make_answer(changing, change);
	else
		result = make_by_id(changing, change);
	return result < 0 ? result : 0;
}

static void changes_forget_ids(struct timerhub_store_change *changes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (changes[i].op == TIMERHUB_STORE_PUT)
			changes[i].id = 0;
}

int changes_make(struct changing *changing, struct timerhub_store_change *changes, unsigned count)
{
	struct statements *statements = changing->statements;
	int result = 0;
	unsigned made = 0;

	for (unsigned i = 0; i < count; i++)
		changes[i].result = 0;
	if (count > 1)
		result = statement_run_numbers(statements, DO_SAVEPOINT, 0, NULL);
	for (; made < count && result >= 0; made++) {
		result = change_make(changing, &changes[made]);
		changes[made].result = result;
	}
	if (result < 0)
		changes_forget_ids(changes, made > 0 ? made - 1 : 0);
	if (count == 1 || sqlite3_get_autocommit(statements->db))
		return result;
	if (result < 0)
		(void)statement_run_numbers(statements, DO_ROLLBACK_TO, 0, NULL);
	made = (unsigned)(statement_run_numbers(statements, DO_RELEASE, 0, NULL) < 0);
	return result < 0 || made == 0 ? result : -EIO;
}
