/* SPDX-License-Identifier: MIT */
/* The statistics. */
#include "base/cancellation.h"
#include "store/store.h"

#define COUNT_MAX 100000
/* Rows that are counted in one read transaction, so that none is long. */
#define STEP_ROWS 2000

/* The state of a count of rows: each step goes on behind the last row of the step before. */
struct counting {
	enum statement which;
	int64_t after_key, after_id;
	uint64_t rows;
	bool has_ended;
	struct look look;
	int result;
};

static void count_step(struct timerhub_store *store, void *context)
{
	struct counting *counting = context;
	const struct values values = {
		.queue = store->queue,
		.id = counting->after_id,
		.lease = counting->after_key,
		.number = STEP_ROWS,
	};
	sqlite3_stmt *row;
	int step, rows = 0;

	counting->result = statement_bind(&store->statements, counting->which, &values, &row);
	if (counting->result < 0)
		return;
	while ((step = sqlite3_step(row)) == SQLITE_ROW) {
		counting->after_key = sqlite3_column_int64(row, 0);
		counting->after_id = sqlite3_column_int64(row, 1);
		rows++;
	}
	counting->result = step == SQLITE_DONE ? 0 : error_of(store->statements.db);
	(void)sqlite3_reset(row);
	counting->rows += (uint64_t)rows;
	counting->has_ended = rows < STEP_ROWS;
	if (counting->result == 0)
		counting->result = deliver_look(store, &counting->look);
}

static int count(struct timerhub_store *store, enum statement which,
                 struct timerhub_store_stats *stats, uint64_t *ret)
{
	struct counting counting = { .which = which };

	while (!counting.has_ended && counting.rows < COUNT_MAX) {
		struct work work = {
			.kind = WORK_CALL,
			.call = count_step,
			.context = &counting,
			.deadline_ns = clock_monotonic_ns() + store->timeout_ns,
		};
		int result = writer_do(store, &work);

		if (result == 0)
			result = counting.result;
		if (result < 0)
			return result;
	}
	*ret = *ret + counting.rows < COUNT_MAX ? *ret + counting.rows : COUNT_MAX;
	if (counting.look.due_us != INT64_MAX)
		stats->oldest_due_ns = (uint64_t)counting.look.due_us * 1000;
	return 0;
}

static int stats_count(struct timerhub_store *store, struct timerhub_store_stats *stats)
{
	int result = count(store, DO_COUNT_WAITING, stats, &stats->waiting);

	if (result == 0)
		result = count(store, DO_COUNT_NEVER, stats, &stats->waiting);
	if (result == 0)
		result = count(store, DO_COUNT_TAKEN, stats, &stats->taken);
	if (result == 0)
		result = count(store, DO_COUNT_PARKED, stats, &stats->parked);
	return result;
}

/* relaxed: the numbers need not fit together */
static void stats_copy(struct timerhub_store *store, struct timerhub_store_stats *stats)
{
	const struct counts *counts = &store->counts;

	stats->is_polling = u32_load_relaxed(&store->watch.is_polling);
	stats->put = u64_load_relaxed(&counts->done[TIMERHUB_STORE_PUT]);
	stats->cancelled = u64_load_relaxed(&counts->done[TIMERHUB_STORE_CANCEL]);
	stats->moved = u64_load_relaxed(&counts->done[TIMERHUB_STORE_MOVE]);
	stats->delivered = u64_load_relaxed(&counts->delivered);
	stats->done = u64_load_relaxed(&counts->done[TIMERHUB_STORE_DONE]);
	stats->retried = u64_load_relaxed(&counts->done[TIMERHUB_STORE_RETRY]) +
	                 u64_load_relaxed(&counts->done[TIMERHUB_STORE_PARK]);
	stats->leases_over = u64_load_relaxed(&counts->leases_over);
	stats->commits = u64_load_relaxed(&counts->commits);
	stats->syncs = u64_load_relaxed(&counts->syncs);
	stats->checkpoints = u64_load_relaxed(&counts->checkpoints);
	stats->disk_full = u64_load_relaxed(&counts->disk_full);
	stats->wal_bytes = files_wal_bytes(&store->files);
	if (u32_load_relaxed(&store->keeper.is_held_back))
		stats->reader_pid = files_reader(&store->files);
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++) {
		stats->lateness[i] = u64_load_relaxed(&counts->lateness[i]);
		stats->sync_ns[i] = u64_load_relaxed(&counts->sync_ns[i]);
	}
	stats->failed = -(int32_t)u32_load_relaxed(&store->failed);
}

int timerhub_store_stats(struct timerhub_store *store, struct timerhub_store_stats *ret)
{
	CANCELLATION_HELD;
	struct timerhub_store_stats stats = { .size = sizeof(stats), .oldest_due_ns = UINT64_MAX };
	int result = store_check(store);

	if (!ret || (ret->size > 0 && ret->size < sizeof(stats)))
		return -EINVAL;
	if (result == 0)
		result = stats_count(store, &stats);
	/* a store that has failed still has statistics, in which `failed` says so */
	if (result < 0 && (result != -EIO || !store_has_failed(store)))
		return result;
	stats_copy(store, &stats);
	*ret = stats;
	return 0;
}
