/* SPDX-License-Identifier: MIT */
#include "store/deliver.h"

#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "store/error.h"
#include "store/schema.h"

/*
 * If the wall clock moves by so much between two looks, it was set. Slewing moves it by less, and a
 * clock that is set by less does little harm.
 */
#define CLOCK_IS_SET_US 100000
#define LEASES_A_PASS 1000

/* ---- the clock ---- */

static int64_t clock_offset_us(const struct timerhub_store *store)
{
	return store_now_us(&store->wall) - store_now_us(&store->since_boot);
}

static bool clock_was_set(const struct timerhub_store *store)
{
	int64_t by_us = clock_offset_us(store) - store->offset_us;

	return by_us > CLOCK_IS_SET_US || by_us < -CLOCK_IS_SET_US;
}

/*
 * Brings periods that were set while the clock was ahead back to the next multiple of their
 * interval, and stores how far the wall clock is ahead of the clock of leases, so that the view can
 * show leases on it.
 */
static int clock_mend(struct timerhub_store *store)
{
	int64_t offset_us = clock_offset_us(store), now_us = store_now_us(&store->wall);
	sqlite3_stmt *statement;
	int result = statement_run_numbers(&store->statements, DO_MEND_PERIODS, 1, &now_us);

	if (result >= 0)
		result = statement_get(&store->statements, DO_SET_CLOCK, &statement);
	if (result < 0)
		return result;
	(void)sqlite3_bind_int64(statement, 1, offset_us);
	(void)sqlite3_bind_text(statement, 2, store->boot, -1, SQLITE_STATIC);
	result = statement_run(&store->statements, statement);
	store->offset_us = offset_us;
	return result < 0 ? result : 0;
}

int deliver_begin(struct timerhub_store *store)
{
	sqlite3_stmt *statement;
	int result = statement_get(&store->statements, DO_CLOCK, &statement);

	if (result < 0)
		return result;
	(void)sqlite3_bind_text(statement, 1, store->boot, -1, SQLITE_STATIC);
	result = statement_ask(&store->statements, statement, &store->offset_us);
	if (result == 1 && !clock_was_set(store))
		return 0;
	/* a boot without a name is known by the wall clock's time at which it began */
	if (result == 0 || (result == 1 && !*store->boot))
		result = statement_run_numbers(&store->statements, DO_VOID_LEASES, 0, NULL);
	return result < 0 ? result : clock_mend(store);
}

/* ---- looks ---- */

static int ask_of_queue(struct timerhub_store *store, enum statement which, int64_t *ret)
{
	sqlite3_stmt *statement;
	int result = statement_get(&store->statements, which, &statement);

	if (result < 0)
		return result;
	(void)sqlite3_bind_text(statement, 1, store->queue, -1, SQLITE_STATIC);
	result = statement_ask(&store->statements, statement, ret);
	if (result == 0)
		*ret = INT64_MAX;
	return result;
}

/*
 * Returns the time on the wall clock, or the time of the stop, because what becomes due after that
 * is not handed out.
 */
static int64_t deliver_now_us(struct timerhub_store *store)
{
	int64_t now_us = store_now_us(&store->wall);
	/* relaxed: a take that does not see it yet began before the stop */
	uint64_t stopped_us = u64_load_relaxed(&store->takers.stopped_us);

	return stopped_us < (uint64_t)now_us ? (int64_t)stopped_us : now_us;
}

int deliver_look(struct timerhub_store *store, struct look *ret)
{
	int64_t lease = INT64_MAX;
	int result = ask_of_queue(store, DO_NEXT_DUE, &ret->due_us);

	if (result >= 0)
		result = ask_of_queue(store, DO_NEXT_LEASE, &lease);
	if (result < 0)
		return result;
	ret->lease_us = lease == INT64_MAX ? INT64_MAX : lease - LEASE_BASE_US;
	return ret->due_us <= deliver_now_us(store) ||
	       ret->lease_us <= store_now_us(&store->since_boot) || clock_was_set(store);
}

/* ---- deliveries ---- */

static int end_leases(struct timerhub_store *store)
{
	sqlite3_stmt *statement;
	int64_t lease = INT64_MAX;
	int64_t now = LEASE_BASE_US + store_now_us(&store->since_boot);
	int result = ask_of_queue(store, DO_NEXT_LEASE, &lease);

	while (result >= 0 && lease <= now) {
		result = statement_get(&store->statements, DO_END_LEASES, &statement);
		if (result < 0)
			break;
		(void)sqlite3_bind_text(statement, 1, store->queue, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(statement, 2, now);
		result = statement_run(&store->statements, statement);
		if (result > 0)
			(void)u64_fetch_add_relaxed(&store->counts.leases_over, (uint64_t)result);
		if (result < LEASES_A_PASS)
			break;
	}
	return result;
}

/* Copies data and key into one block of memory, each with a NUL behind it. */
static int task_copy(struct timerhub_store_task *task, sqlite3_stmt *row)
{
	bool is_text = sqlite3_column_type(row, 5) == SQLITE_TEXT;
	const void *data = is_text ? sqlite3_column_text(row, 5) : sqlite3_column_blob(row, 5);
	const unsigned char *key = sqlite3_column_text(row, 2);
	size_t data_len = (size_t)sqlite3_column_bytes(row, 5);
	size_t key_len = key ? (size_t)sqlite3_column_bytes(row, 2) + 1 : 0;
	char *block = malloc(data_len + 1 + key_len);

	if (!block)
		return -ENOMEM;
	if (data_len > 0)
		memcpy(block, data, data_len);
	block[data_len] = '\0';
	if (key_len > 0)
		memcpy(block + data_len + 1, key, key_len);
	task->data = block;
	task->data_len = data_len;
	task->key = key_len > 0 ? block + data_len + 1 : NULL;
	return 0;
}

/*
 * Fills a task with the delivery that a row is about to become, and returns the value of `claim`
 * for it.
 */
static int64_t task_fill(const struct timerhub_store *store, struct timerhub_store_task *task,
                         sqlite3_stmt *row, int64_t now_us)
{
	int64_t due_us = sqlite3_column_int64(row, 1), interval_us = sqlite3_column_int64(row, 3);
	int64_t claim = sqlite3_column_int64(row, 4), delivery = (claim >> CLAIM_SHIFT) + 1;
	int64_t attempts = claim & CLAIM_ATTEMPTS;

	if (attempts < CLAIM_ATTEMPTS)
		attempts++;
	*task = (struct timerhub_store_task){
		.id = (uint64_t)sqlite3_column_int64(row, 0),
		.delivery = (uint64_t)delivery,
		.due_ns = (uint64_t)due_us * 1000,
		.interval_ns = (uint64_t)interval_us * 1000,
		.periods = interval_us > 0 ? (uint64_t)((now_us - due_us) / interval_us) + 1 : 1,
		.attempts = (uint64_t)attempts,
	};
	claim = delivery << CLAIM_SHIFT | attempts;
	return (uint64_t)attempts >= store->attempts_max ? claim | CLAIM_LAST : claim;
}

/*
 * The due tasks of one SELECT. They are changed only after it, because the index would otherwise
 * move under its cursor.
 */
#define FOUND_MAX 64u
struct found {
	int64_t claims[FOUND_MAX], exhausted[FOUND_MAX];
	unsigned due, parks;
};

/* Finds the next due tasks for one taker. */
static int find_due(struct timerhub_store *store, struct timerhub_store_task *tasks, unsigned max,
                    struct found *found)
{
	int64_t now_us = deliver_now_us(store);
	sqlite3_stmt *row;
	int result = statement_get(&store->statements, DO_DUE, &row), step = SQLITE_DONE;

	found->due = found->parks = 0;
	if (result < 0)
		return result;
	(void)sqlite3_bind_text(row, 1, store->queue, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(row, 2, now_us);
	(void)sqlite3_bind_int64(row, 3, max < FOUND_MAX ? max : FOUND_MAX);
	while (result == 0 && (step = sqlite3_step(row)) == SQLITE_ROW) {
		invariant(found->due + found->parks < FOUND_MAX && found->due < max);
		if (sqlite3_column_int64(row, 4) & CLAIM_LAST) {
			found->exhausted[found->parks++] = sqlite3_column_int64(row, 0);
			continue;
		}
		found->claims[found->due] = task_fill(store, &tasks[found->due], row, now_us);
		result = task_copy(&tasks[found->due], row);
		found->due += result == 0;
	}
	if (result == 0 && step != SQLITE_DONE)
		result = error_of(store->statements.db);
	(void)sqlite3_reset(row);
	/* if there is memory for some of them, the rest can wait */
	return result == -ENOMEM && found->due > 0 ? 0 : result;
}

static int lease_found(struct timerhub_store *store, struct timerhub_store_task *tasks,
                       const struct found *found)
{
	int64_t end_us = store_now_us(&store->since_boot) + (int64_t)store->lease_us;
	int result = 0;

	for (unsigned i = 0; i < found->due && result >= 0; i++) {
		int64_t numbers[] = { (int64_t)tasks[i].id, LEASE_BASE_US + end_us,
			              found->claims[i] };

		tasks[i].lease_end_ns = (uint64_t)end_us * 1000;
		result = statement_run_numbers(&store->statements, DO_TAKE, 3, numbers);
	}
	for (unsigned i = 0; i < found->parks && result >= 0; i++)
		result = statement_run_numbers(&store->statements, DO_PARK_EXHAUSTED, 1,
		                               &found->exhausted[i]);
	return result;
}

/* Hands out due tasks to one taker. Returns 1 if more may be due, 0, or a negative errno. */
static int serve_one(struct timerhub_store *store, struct taker *taker)
{
	while ((unsigned)taker->result < taker->max) {
		struct timerhub_store_task *tasks = &taker->tasks[taker->result];
		struct found found;
		int result = find_due(store, tasks, taker->max - (unsigned)taker->result, &found);

		taker->result += (int)found.due; /* deliver_undo() frees them */
		if (result >= 0)
			result = lease_found(store, tasks, &found);
		if (result < 0)
			return result;
		if (found.due + found.parks == 0)
			return 0;
	}
	return 1;
}

int deliver_serve(struct timerhub_store *store, struct taker *takers)
{
	int result = clock_was_set(store) ? clock_mend(store) : 0;

	if (result >= 0)
		result = end_leases(store);
	for (result = result < 0 ? result : 1; takers && result > 0; takers = takers->next)
		result = serve_one(store, takers);
	return result < 0 ? result : 0;
}

void deliver_undo(struct taker *takers)
{
	for (; takers; takers = takers->next)
		while (takers->result > 0)
			free((void *)(uintptr_t)takers->tasks[--takers->result].data);
}

void deliver_count(struct timerhub_store *store, const struct taker *takers)
{
	uint64_t now_ns = clock_now_ns(&store->wall);

	for (; takers; takers = takers->next) {
		for (int i = 0; i < takers->result; i++) {
			uint64_t due_ns = takers->tasks[i].due_ns;

			store_count_time(store->counts.lateness,
			                 now_ns > due_ns ? now_ns - due_ns : 0);
		}
		if (takers->result > 0)
			(void)u64_fetch_add_relaxed(&store->counts.delivered,
			                            (uint64_t)takers->result);
	}
}
