/* SPDX-License-Identifier: MIT */
/*
 * Implements timerhub_store_stats(). It counts the tasks of a queue in the database, in small
 * steps, and adds what this handle of the store has counted itself.
 */
#include "base/bits.h"
#include "base/cancellation.h"
#include "store/store.h"

#define COUNT_MAX 100000
/* Rows that are counted in one read transaction, so that none is long. */
#define STEP_ROWS 2000

/*
 * Counts the rows that a statement lists, and adds their number to *count. Each step lists a
 * limited number of rows, so that no read transaction is long. The connection is that of the
 * store's own thread, so a count may wait for a checkpoint, but it delays no writer.
 */
static int count_rows(struct timerhub_store *store, enum statement which, uint64_t *count)
{
	struct values values = { .queue = store->queue, .number = STEP_ROWS };
	int rows = STEP_ROWS, result = 0;
	sqlite3_stmt *row = NULL;

	while (result == 0 && rows == STEP_ROWS && *count < COUNT_MAX) {
		lock_take(&store->keeper.lock);
		result = statement_bind(&store->keeper.statements, which, &values, &row);
		for (rows = 0; result == 0 && (result = sqlite3_step(row)) == SQLITE_ROW; rows++) {
			values.lease = sqlite3_column_int64(row, 0);
			values.id = sqlite3_column_int64(row, 1);
			result = 0;
		}
		if (result > 0)
			result = result == SQLITE_DONE ? 0 : error_of(store->keeper.statements.db);
		(void)sqlite3_reset(row);
		lock_give(&store->keeper.lock);
		*count = u64_min(*count + (uint64_t)rows, COUNT_MAX);
	}
	return result;
}

static int count_all(struct timerhub_store *store, struct timerhub_store_stats *stats)
{
	struct values values = { .queue = store->queue };
	int64_t due_us = 0;
	int result = count_rows(store, DO_COUNT_WAITING, &stats->waiting);

	if (result == 0)
		result = count_rows(store, DO_COUNT_NEVER, &stats->waiting);
	if (result == 0)
		result = count_rows(store, DO_COUNT_TAKEN, &stats->taken);
	if (result == 0)
		result = count_rows(store, DO_COUNT_PARKED, &stats->parked);
	if (result < 0)
		return result;
	lock_take(&store->keeper.lock);
	result = statement_run(&store->keeper.statements, DO_LOOK, &values, &due_us);
	lock_give(&store->keeper.lock);
	if (result > 0)
		stats->oldest_due_ns = (uint64_t)due_us * 1000;
	return result;
}

int timerhub_store_stats(struct timerhub_store *store, struct timerhub_store_stats *ret)
{
	CANCELLATION_HELD;
	struct timerhub_store_stats stats;
	bool is_held_back;
	int result = store_check(store);

	if (!ret || (ret->size > 0 && ret->size < sizeof(stats)))
		return -EINVAL;
	if (result < 0)
		return result;
	lock_take(&store->shared.lock);
	stats = store->shared.counts;
	stats.size = sizeof(stats);
	stats.oldest_due_ns = UINT64_MAX;
	is_held_back = store->keeper.is_held_back;
	lock_give(&store->shared.lock);
	if (store_find_files(store) == 0 && !store_has_failed(store))
		result = count_all(store, &stats);
	if (result < 0)
		return result;
	stats.is_polling = u32_load_relaxed(&store->watch.is_polling); /* relaxed: only shown */
	stats.wal_bytes = files_wal_bytes(&store->files);
	stats.reader_pid = is_held_back ? files_reader(&store->files) : 0;
	stats.failed = store_has_failed(store) ? -EIO : 0;
	*ret = stats;
	return 0;
}
