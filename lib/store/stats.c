/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/cancellation.h"
#include "base/options.h"
#include "store/error.h"
#include "store/writer.h"

#define COUNT_MAX 100000
/* rows that one step counts; each step is a read transaction of its own, so that none is long */
#define STEP_ROWS 2000

/* Counts rows of one kind, from the one where the last step ended. */
struct counting {
	enum statement which;
	int64_t after_key, after_id;
	uint64_t rows;
	bool has_ended;
	int result;
};

static void count_step(struct timerhub_store *store, void *context)
{
	struct counting *counting = context;
	sqlite3_stmt *row;
	int step = SQLITE_DONE, rows = 0;

	counting->result = statement_get(&store->statements, counting->which, &row);
	if (counting->result < 0)
		return;
	(void)sqlite3_bind_text(row, 1, store->queue, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(row, 2, counting->after_key);
	(void)sqlite3_bind_int64(row, 3, counting->after_id);
	(void)sqlite3_bind_int64(row, 4, STEP_ROWS);
	while ((step = sqlite3_step(row)) == SQLITE_ROW) {
		counting->after_key = sqlite3_column_int64(row, 0);
		counting->after_id = sqlite3_column_int64(row, 1);
		rows++;
	}
	if (step != SQLITE_DONE)
		counting->result = error_of(store->statements.db);
	(void)sqlite3_reset(row);
	counting->rows += (uint64_t)rows;
	counting->has_ended = rows < STEP_ROWS;
}

static int count(struct timerhub_store *store, enum statement which, uint64_t *ret)
{
	struct counting counting = { .which = which };
	int result = 0;

	while (result == 0 && !counting.has_ended && counting.rows < COUNT_MAX) {
		struct work work = {
			.kind = WORK_READ,
			.read = count_step,
			.context = &counting,
			.deadline_ns = clock_monotonic_ns() + store->timeout_ns,
		};

		result = writer_do(store, &work);
		if (result == 0)
			result = counting.result;
	}
	*ret += counting.rows;
	if (*ret > COUNT_MAX)
		*ret = COUNT_MAX;
	return result;
}

static int stats_count(struct timerhub_store *store, struct timerhub_store_stats *stats)
{
	struct work look = { .kind = WORK_LOOK, .deadline_ns = 0, .look = { INT64_MAX, 0 } };
	int result = count(store, DO_COUNT_WAITING, &stats->waiting);

	if (result == 0)
		result = count(store, DO_COUNT_NEVER, &stats->waiting);
	if (result == 0)
		result = count(store, DO_COUNT_TAKEN, &stats->taken);
	if (result == 0)
		result = count(store, DO_COUNT_PARKED, &stats->parked);
	if (result < 0)
		return result;
	/*
	 * a look that finds something due but has no time to wait for the write lock still says
	 * when it was due
	 */
	look.deadline_ns = clock_monotonic_ns() + store->timeout_ns;
	result = writer_do(store, &look);
	if (look.look.due_us != INT64_MAX)
		stats->oldest_due_ns = (uint64_t)look.look.due_us * 1000;
	return result;
}

/* relaxed, all: see struct counts */
static void stats_copy(struct timerhub_store *store, struct timerhub_store_stats *stats)
{
	const struct counts *counts = &store->counts;

	stats->is_polling = store->takers.inotify_fd < 0;
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
	/* a store that has failed still has statistics, which say so */
	if (result < 0 && (result != -EIO || u32_load_relaxed(&store->failed) == 0))
		return result;
	stats_copy(store, &stats);
	*ret = stats;
	return 0;
}
