/* SPDX-License-Identifier: MIT */
/*
 * What takes do in the database. A due time is a time on the wall clock, which may be set. A lease
 * ends on CLOCK_BOOTTIME, so it is a length of time whatever the wall clock says.
 */
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

/*
 * If the difference of the two clocks changes by more than this, the wall clock was set. Slewing
 * changes it by less, and a clock that is set by less does little harm.
 */
#define CLOCK_IS_SET_US 100000

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
 * Mends what a wall clock that was wrong has done: a period that was set while the clock was ahead
 * moves back by whole intervals. Also stores the difference of the clocks, by which the view
 * timerhub_list converts the ends of leases.
 */
static int clock_mend(struct timerhub_store *store)
{
	struct values values = {
		.key = store->boot,
		.due_us = store_now_us(&store->wall),
		.number = clock_offset_us(store),
	};
	int result = statement_run(&store->statements, DO_MEND_PERIODS, &values, NULL);

	if (result >= 0)
		result = statement_run(&store->statements, DO_SET_CLOCK, &values, NULL);
	store->offset_us = values.number;
	return result < 0 ? result : 0;
}

int deliver_open(struct timerhub_store *store)
{
	struct values values = { .key = store->boot };
	int result = statement_run(&store->statements, DO_CLOCK, &values, &store->offset_us);

	if (result == 1 && !clock_was_set(store))
		return 0;
	/* if the boot has no id, the clocks tell whether it is another one */
	if (result == 0 || (result == 1 && !*store->boot))
		result = statement_run(&store->statements, DO_VOID_LEASES, NULL, NULL);
	return result < 0 ? result : clock_mend(store);
}

/* ---- looks ---- */

/* Returns the time up to which due tasks are handed out: now, or when the store was stopped. */
static int64_t deliver_now_us(struct timerhub_store *store)
{
	int64_t now_us = store_now_us(&store->wall);
	/*
	 * Relaxed: a take that does not see yet that another thread has stopped the store may
	 * deliver as if it had run just before the stop.
	 */
	uint64_t stopped_us = u64_load_relaxed(&store->watch.stopped_us);

	return stopped_us < (uint64_t)now_us ? (int64_t)stopped_us : now_us;
}

int deliver_look(struct timerhub_store *store, struct look *ret)
{
	struct values values = { .queue = store->queue };
	int result;

	*ret = (struct look){ INT64_MAX, INT64_MAX };
	result = statement_run(&store->statements, DO_NEXT_DUE, &values, &ret->due_us);
	if (result >= 0)
		result = statement_run(&store->statements, DO_NEXT_LEASE, &values, &ret->lease_us);
	if (result < 0)
		return result;
	if (result == 0)
		ret->lease_us = INT64_MAX; /* min() of no rows is NULL */
	else
		ret->lease_us -= LEASE_BASE_US;
	return ret->due_us <= deliver_now_us(store) ||
	       ret->lease_us <= store_now_us(&store->since_boot) || clock_was_set(store);
}

/* ---- deliveries ---- */

int deliver_begin(struct timerhub_store *store)
{
	struct values values = {
		.queue = store->queue,
		.lease = LEASE_BASE_US + store_now_us(&store->since_boot),
	};
	int64_t lease = INT64_MAX;
	int result = clock_was_set(store) ? clock_mend(store) : 0;

	if (result >= 0)
		result = statement_run(&store->statements, DO_NEXT_LEASE, &values, &lease);
	if (result <= 0 || lease > values.lease)
		return result < 0 ? result : 0;
	result = statement_run(&store->statements, DO_END_LEASES, &values, NULL);
	if (result > 0)
		store_count(&store->counts.leases_over, (uint64_t)result);
	return result < 0 ? result : 0;
}

/*
 * Fills a caller's task from a row that is about to be taken. Key and data lie in one block of
 * memory, each with a NUL behind it. Returns the row's new value of `claim`, or 0 without memory.
 */
static int64_t task_fill(const struct timerhub_store *store, struct timerhub_store_task *task,
                         sqlite3_stmt *row, int64_t now_us)
{
	int64_t due_us = sqlite3_column_int64(row, 1), interval_us = sqlite3_column_int64(row, 3);
	int64_t claim = sqlite3_column_int64(row, 4), attempts = claim & CLAIM_ATTEMPTS;
	bool is_text = sqlite3_column_type(row, 5) == SQLITE_TEXT;
	const void *data = is_text ? sqlite3_column_text(row, 5) : sqlite3_column_blob(row, 5);
	const void *key = sqlite3_column_text(row, 2);
	size_t data_len = (size_t)sqlite3_column_bytes(row, 5);
	size_t key_len = (size_t)sqlite3_column_bytes(row, 2);
	char *block = calloc(1, data_len + 1 + key_len + 1);

	if (!block)
		return 0;
	if (attempts < CLAIM_ATTEMPTS)
		attempts++;
	*task = (struct timerhub_store_task){
		.id = (uint64_t)sqlite3_column_int64(row, 0),
		.delivery = (uint64_t)(claim >> CLAIM_SHIFT) + 1,
		.due_ns = (uint64_t)due_us * 1000,
		.interval_ns = (uint64_t)interval_us * 1000,
		.periods = interval_us > 0 ? (uint64_t)((now_us - due_us) / interval_us) + 1 : 1,
		.attempts = (uint64_t)attempts,
		.key = key ? block + data_len + 1 : NULL,
		.data = data_len > 0 ? memcpy(block, data, data_len) : block,
		.data_len = data_len,
	};
	if (key)
		memcpy(block + data_len + 1, key, key_len);
	claim = (int64_t)task->delivery << CLAIM_SHIFT | attempts;
	return (uint64_t)attempts >= store->attempts_max ? claim | CLAIM_LAST : claim;
}

/*
 * Hands out the next due task, or parks it if it has used up its attempts. The row is changed only
 * after the SELECT has ended, because its index entry would move under the cursor. Returns 1, or 0
 * if nothing is due, or a negative errno.
 */
static int serve_next(struct timerhub_store *store, struct work *take)
{
	struct timerhub_store_task *task = &take->tasks[take->result];
	int64_t lease_end_us = store_now_us(&store->since_boot) + store->lease_us;
	struct values values = {
		.queue = store->queue,
		.due_us = deliver_now_us(store),
		.lease = LEASE_BASE_US + lease_end_us,
	};
	enum statement which = DO_TAKE;
	sqlite3_stmt *row;
	int result = statement_bind(&store->statements, DO_DUE, &values, &row);

	if (result < 0)
		return result;
	result = sqlite3_step(row);
	if (result == SQLITE_ROW) {
		values.id = sqlite3_column_int64(row, 0);
		values.claim = sqlite3_column_int64(row, 4);
		if (values.claim & CLAIM_LAST) {
			which = DO_PARK;
			values.claim >>= CLAIM_SHIFT;
			values.number = UINT32_MAX; /* the reason */
		} else if ((values.claim = task_fill(store, task, row, values.due_us)) == 0) {
			result = -ENOMEM;
		}
	} else {
		result = result == SQLITE_DONE ? 0 : error_of(store->statements.db);
	}
	(void)sqlite3_reset(row);
	if (result <= 0)
		return result;
	if (which == DO_TAKE) {
		task->lease_end_ns = (uint64_t)lease_end_us * 1000;
		take->result++; /* from here on deliver_undo() frees the task */
	}
	result = statement_run(&store->statements, which, &values, NULL);
	return result < 0 ? result : 1;
}

int deliver_serve(struct timerhub_store *store, struct work *take)
{
	int result = 1;

	while (result > 0 && (unsigned)take->result < take->count)
		result = serve_next(store, take);
	/* if memory ran out after some tasks, hand these out */
	return result < 0 && (result != -ENOMEM || take->result == 0) ? result : 0;
}

void deliver_undo(struct work *take)
{
	for (; take->kind == WORK_TAKE && take->result > 0; take->result--)
		timerhub_store_release(NULL, &take->tasks[take->result - 1]);
}

void deliver_count(struct timerhub_store *store, const struct work *take)
{
	uint64_t now_ns = clock_now_ns(&store->wall);

	for (int i = 0; i < take->result; i++) {
		uint64_t due_ns = take->tasks[i].due_ns;
		uint64_t late_ns = now_ns > due_ns ? now_ns - due_ns : 0;

		store_count(&store->counts.lateness[histogram_bucket(late_ns)], 1);
	}
	store_count(&store->counts.delivered, (uint64_t)take->result);
}
