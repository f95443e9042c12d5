/* SPDX-License-Identifier: MIT */
/*
 * The store's own thread (keeper.h). It checkpoints in pieces of a mebibyte, between which submits
 * are made: SQLite cannot pause within a checkpoint, so a submit waits for one piece at most. When
 * nobody has written for a while, it checkpoints the rest too, so that on a disk that becomes full
 * the WAL can be begun anew.
 */
#define _GNU_SOURCE
#include "store/keeper.h"

#include "base/thread.h"
#include "store/error.h"
#include "store/takers.h"
#include "store/writer.h"

#define THREAD_NAME "timerhub-store"
#define PIECE_BYTES (UINT64_C(1) << 20)
/* if more than this is in the WAL, writers wait until its last pages are copied */
#define RESTART_BYTES (UINT64_C(2) << 20)
#define QUIET_NS UINT64_C(100000000)
#define RESTART_WAITS_NS UINT64_C(1000000000)

static uint64_t keeper_uncopied(struct timerhub_store *store)
{
	/* relaxed: whoever raises it wakes the thread */
	uint64_t bytes = u64_load_relaxed(&store->keeper.wal_bytes);
	uint64_t copied = u64_load_relaxed(&store->keeper.checkpointed_bytes);

	return bytes > copied ? bytes - copied : 0;
}

/*
 * Copies what it can of the WAL into the database, while other threads and processes go on to
 * write. If nearly all is copied, and the WAL is large or the disk nearly full, it then asks the
 * leader to begin the WAL anew.
 */
static void keeper_checkpoint(struct timerhub_store *store)
{
	struct work restart = { .kind = WORK_RESTART_WAL };
	/* relaxed, as all here: for statistics, as hints, and for this thread */
	uint64_t seen = u64_load_relaxed(&store->keeper.wal_bytes), bytes = seen;
	int log = -1, copied = -1, result;

	result = sqlite3_wal_checkpoint_v2(store->keeper.db, "main", SQLITE_CHECKPOINT_PASSIVE,
	                                   &log, &copied);
	if (result != SQLITE_OK && error_of(store->keeper.db) == -EIO)
		store_fail(store);
	/* if another process is checkpointing, or the disk is full, that is all for now */
	if (log >= 0)
		bytes = (uint64_t)log * store->keeper.frame_bytes;
	/* another process may have begun the WAL anew since this one's last commit */
	(void)u64_cas_relaxed(&store->keeper.wal_bytes, &seen, bytes);
	u64_store_relaxed(&store->keeper.checkpointed_bytes, bytes);
	u32_store_relaxed(&store->keeper.is_held_back, result != SQLITE_OK || copied < log);
	(void)u64_fetch_add_relaxed(&store->counts.checkpoints, 1);
	if (result != SQLITE_OK || copied < log - (int)(PIECE_BYTES / store->keeper.frame_bytes) ||
	    (bytes < RESTART_BYTES && files_have_room(&store->files)))
		return;
	restart.deadline_ns = clock_monotonic_ns() + RESTART_WAITS_NS;
	(void)writer_do(store, &restart);
}

/*
 * Returns when there may be something to do.
 *
 *   this thread               a leader
 *   rests = 1                 wal_bytes = more
 *   load wal_bytes            load rests
 *
 * All four are seq_cst, so one of the two sees what the other did, and no commit stays in the WAL
 * while this thread rests.
 */
static void keeper_sleep(struct timerhub_store *store, uint32_t number)
{
	/* relaxed: only this thread writes it */
	uint64_t copied = u64_load_relaxed(&store->keeper.checkpointed_bytes);
	bool rests;

	u32_store_seq_cst(&store->keeper.rests, 1);
	rests = u64_load_seq_cst(&store->keeper.wal_bytes) <= copied;
	if (!rests)
		u32_store_seq_cst(&store->keeper.rests, 0);
	eventcount_wait(&store->keeper.work, number, rests ? UINT64_MAX : QUIET_NS);
	u32_store_seq_cst(&store->keeper.rests, 0);
}

static void *keeper_main(void *argument)
{
	struct timerhub_store *store = argument;
	uint64_t seen = 0;

	thread_begin();
	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	for (;;) {
		uint32_t number = eventcount_number(&store->keeper.work);
		/*
		 * relaxed, all: the eventcount's acquire makes visible what was stored before it
		 * was raised
		 */
		bool quits = u32_load_relaxed(&store->keeper.quits) != 0;
		uint64_t bytes = u64_load_relaxed(&store->keeper.wal_bytes);

		if (u32_exchange_relaxed(&store->keeper.leads, 0) != 0) {
			writer_lead_for_submits(store);
			continue;
		}
		if (quits)
			return NULL;
		u32_store_relaxed(&store->keeper.hinted, 0);
		if (keeper_uncopied(store) >= PIECE_BYTES ||
		    (keeper_uncopied(store) > 0 && bytes == seen)) {
			keeper_checkpoint(store);
			continue;
		}
		seen = bytes;
		keeper_sleep(store, number);
	}
}

int keeper_start(struct timerhub_store *store)
{
	int result = thread_create(&store->keeper.thread, keeper_main, store);

	store->keeper.is_started = result == 0;
	return result;
}

void keeper_stop(struct timerhub_store *store)
{
	if (!store->keeper.is_started)
		return;
	/* relaxed: the eventcount's release makes it visible to the thread */
	u32_store_relaxed(&store->keeper.quits, 1);
	eventcount_advance(&store->keeper.work, 1);
	(void)pthread_join(store->keeper.thread, NULL);
}
