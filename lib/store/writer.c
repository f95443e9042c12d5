/* SPDX-License-Identifier: MIT */
/*
 * Group commit. A thread that wants something done appends it to a queue. If nobody leads, it
 * leads: it waits for the write lock, and only then takes the whole queue, so that what came
 * meanwhile goes along. All of it is one transaction.
 *
 * COMMIT does not sync (synchronous=NORMAL). The leader syncs the WAL itself when it has given the
 * write lock back, so that other processes go on meanwhile. That is as durable as a sync within
 * COMMIT: a frame of the WAL is lost only by a loss of power before the sync, and a checkpoint
 * syncs the WAL before it copies. At most one batch is synced, one waits to be, and one gathers:
 * the lead is handed on when it is the batch's turn to be synced, because batches would be small
 * otherwise.
 *
 * The store's own thread, the keeper, leads for submits, for which nobody waits, and checkpoints.
 * If a checkpoint cannot run, because another process checkpoints or the disk is full, the keeper
 * waits for more commits.
 *
 * store_has_failed() may miss a failure at this moment. But after a failed sync no change is
 * reported as durable: sync_wal() asks store_has_failed() under synced.lock, and a thread whose
 * sync fails calls store_fail() while it holds this lock.
 *
 * Labels:
 * [work] batch_answer, lead_hand_on → work_await: carries what the leader has written to a work
 * item, and with the lead what it has done to the connection.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "base/bell.h"
#include "base/bits.h"
#include "base/invariant.h"
#include "base/thread.h"
#include "store/store.h"

#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000
#define TURN_MAX_NS UINT64_C(2500000000)
/*
 * If the turn was not free for long although nobody writes, its holder may be stopped, or dead with
 * a forked child that has inherited the lock. Then this handle writes without the turn for so long.
 */
#define NO_TURN_NS UINT64_C(60000000000)
#define THREAD_NAME "timerhub-store"
/*
 * The store's thread checkpoints so much at a time, because SQLite cannot pause within a
 * checkpoint. In between it makes the changes that timerhub_store_submit() has queued.
 */
#define PIECE_BYTES (UINT64_C(2) << 20)
/* If the WAL is longer than this, writers wait until its last pages are copied. */
#define RESTART_BYTES (UINT64_C(4) << 20)
/*
 * After this time without a commit, the rest of the WAL is checkpointed, so that the WAL can begin
 * anew even if the disk becomes full.
 */
#define QUIET_NS UINT64_C(100000000)
#define RESTART_WAITS_NS UINT64_C(1000000000)

/* ---- the queue ---- */

/*
 * Appends a work item to the queue. Returns true if no thread is doing the items of the queue: the
 * caller then has to become this thread, the leader. For an item of timerhub_store_submit(), it has
 * to wake the store's own thread instead, which leads unless another thread comes first.
 */
static bool work_append(struct timerhub_store *store, struct work *work)
{
	bool leads;

	u32_store_relaxed(&work->state, WORK_WAITS); /* relaxed: the queue's lock publishes it */
	work->next = NULL;
	work->result = 0;
	lock_take(&store->shared.lock);
	*store->shared.last = work;
	store->shared.last = &work->next;
	leads = !store->shared.is_led && (!work->is_submit || store->shared.first == work);
	store->shared.is_led |= leads && !work->is_submit;
	lock_give(&store->shared.lock);
	return leads;
}

/* Takes all work items out of the queue and returns them as a list. */
static struct work *work_take_all(struct timerhub_store *store)
{
	struct work *works;

	lock_take(&store->shared.lock);
	invariant(store->shared.is_led && !*store->shared.last);
	works = store->shared.first;
	store->shared.first = NULL;
	store->shared.last = &store->shared.first;
	lock_give(&store->shared.lock);
	return works;
}

/*
 * Removes a work item from the queue after its deadline. Returns false if it is too late for that:
 * the leader has taken the item, or the calling thread was made the next leader.
 */
static bool work_withdraw(struct timerhub_store *store, const struct work *work)
{
	struct work **place = &store->shared.first;
	bool withdraws;

	lock_take(&store->shared.lock);
	while (*place && *place != work)
		place = &(*place)->next;
	/*
	 * Relaxed is enough, because this thread holds shared.lock. Other threads change the state
	 * of a queued item only while they hold this lock.
	 */
	withdraws = *place && u32_load_relaxed(&work->state) == WORK_WAITS;
	if (withdraws) {
		*place = work->next;
		if (!*place)
			store->shared.last = place;
	}
	lock_give(&store->shared.lock);
	return withdraws;
}

/*
 * Waits until the work item is done. Returns true if instead the calling thread has become the
 * leader, and must do all items.
 */
static bool work_await(struct timerhub_store *store, struct work *work)
{
	uint64_t deadline_ns = work->deadline_ns;

	for (;;) {
		uint32_t state = u32_load_acquire(&work->state); /* [work] */
		uint64_t now_ns = clock_monotonic_ns();

		if (state != WORK_WAITS)
			return state == WORK_LEADS;
		if (now_ns >= deadline_ns) {
			if (work_withdraw(store, work)) {
				work->result = -EAGAIN;
				return false;
			}
			deadline_ns = UINT64_MAX; /* it has begun, and soon ends */
		}
		futex_wait(&work->state, WORK_WAITS,
		           deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns - now_ns);
	}
}

/*
 * Makes a waiting thread the leader, which does all work items. The store's own thread leads if
 * nobody waits, and is also woken for a checkpoint.
 */
static void lead_hand_on(struct timerhub_store *store)
{
	struct work *next;
	bool wakes;

	lock_take(&store->shared.lock);
	invariant(store->shared.is_led);
	for (next = store->shared.first; next && next->is_submit;)
		next = next->next;
	store->shared.is_led = next != NULL;
	if (next) {
		u32_store_release(&next->state, WORK_LEADS); /* [work] */
		futex_wake(&next->state, 1);
	}
	wakes = !next && (store->shared.first || store->keeper.wants_restart);
	if (store->keeper.wal_bytes >= store->keeper.wakes_bytes) {
		store->keeper.wakes_bytes = UINT64_MAX;
		wakes = true;
	}
	lock_give(&store->shared.lock);
	if (wakes)
		eventcount_advance(&store->keeper.work, 1);
}

/* ---- the transaction ---- */

static void turn_give(struct timerhub_store *store)
{
	if (store->has_turn)
		files_give_turn(&store->files);
	store->has_turn = false;
}

int writer_begin(struct timerhub_store *store, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), nap_ns = NAP_MIN_NS;
	/*
	 * wait only half of the time for the turn, the lock by which writers queue, because a
	 * process that was stopped may hold it
	 */
	uint64_t half_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / 2 : 0;
	bool queues = now_ns >= store->no_turn_until_ns;
	bool waits = queues && files_have_queue(&store->files);
	int result;

	if (store_find_files(store) < 0)
		return -EIO;
	for (;; waits = true) {
		bool asks = waits && queues && !store->has_turn;

		if (asks)
			queues = store->has_turn = files_take_turn(
				&store->files, now_ns + u64_min(half_ns, TURN_MAX_NS));
		result = transaction_begin(&store->statements);
		if (result == 0 && asks && !queues && half_ns >= TURN_MAX_NS / 8)
			store->no_turn_until_ns = now_ns + NO_TURN_NS;
		if (result != -EBUSY || clock_monotonic_ns() >= deadline_ns)
			break;
		if (!waits)
			continue;
		/*
		 * A program without this library may be writing. Such a program does not queue, so
		 * sleep a little, and try again.
		 */
		files_nap(nap_ns);
		nap_ns = u64_min(nap_ns * 2, NAP_MAX_NS);
	}
	if (result < 0)
		turn_give(store);
	return result == -EBUSY ? -EAGAIN : result < 0 ? result : 0;
}

int writer_end(struct timerhub_store *store, int result)
{
	result = transaction_end(&store->statements, result);
	if (result == -EIO)
		store_fail(store);
	turn_give(store);
	return result < 0 ? result : 0;
}

void store_fail(struct timerhub_store *store)
{
	u32_store_relaxed(&store->failed, EIO); /* relaxed: see the head of this file */
	bell_ring(store->watch.bell);
}

int store_find_files(struct timerhub_store *store)
{
	if (files_are_there(&store->files))
		return 0;
	store_fail(store);
	return -EIO;
}

/* ---- a batch ---- */

struct batch {
	struct work *works;
	const struct work *own; /* the leader's own item; NULL: it has none */
	struct making making;
	bool is_durable; /* an item in it promises stable storage */
};

/*
 * Makes the changes of one work item, and stores their result in it. Returns an error only if the
 * whole transaction has failed.
 */
static int batch_change(struct timerhub_store *store, struct batch *batch, struct work *work)
{
	int result = changes_make(store, &batch->making, work->now_us, work->changes, work->count);

	work->result = result;
	if (sqlite3_get_autocommit(store->statements.db))
		return result < 0 ? result : -EIO;
	if (result == -EIO || result == -ENOMEM || (result == -ENOSPC && !batch->making.is_refused))
		return result;
	batch->is_durable |= result == 0 && work->changes->op != STORE_TOUCH;
	return 0;
}

/*
 * Makes a batch's changes, and then its takes, in the open transaction, and ends it by a commit, or
 * after an error by a rollback. If `serves` is false, each take gets -ENOSPC instead of tasks.
 */
static int batch_transact(struct timerhub_store *store, struct batch *batch, bool serves)
{
	int result = 0;

	batch->is_durable = false;
	for (struct work *work = batch->works; work && result == 0; work = work->next)
		if (work->changes)
			result = batch_change(store, batch, work);
		else
			work->result = serves ? 0 : -ENOSPC;
	if (result == 0 && serves)
		result = deliver_serve(store, batch->works);
	result = writer_end(store, result);
	for (struct work *work = batch->works; work && result < 0; work = work->next)
		while (!work->changes && work->result > 0)
			timerhub_store_release(NULL, &work->tasks[--work->result]);
	return result;
}

static void batch_count(struct timerhub_store *store, const struct batch *batch)
{
	struct timerhub_store_stats *counts = &store->shared.counts;
	uint64_t now_ns = clock_now_ns(&store->wall);

	lock_take(&store->shared.lock);
	counts->commits++;
	for (const struct work *work = batch->works; work; work = work->next) {
		if (work->changes)
			changes_count(counts, work->changes, work->count, work->result);
		for (int i = 0; !work->changes && i < work->result; i++) {
			uint64_t due_ns = work->tasks[i].due_ns;

			counts->lateness[histogram_bucket(now_ns - u64_min(due_ns, now_ns))]++;
			counts->delivered++;
		}
	}
	lock_give(&store->shared.lock);
}

/* ---- after the commit ---- */

/* Syncs the WAL. The caller holds synced.lock, so that batches are synced in their order. */
static int sync_wal(struct timerhub_store *store)
{
	uint64_t began_ns = clock_monotonic_ns(), took_ns;

	if (store_has_failed(store) || fdatasync(store->files.wal_fd) < 0) {
		store_fail(store);
		return -EIO;
	}
	took_ns = clock_monotonic_ns() - began_ns;
	lock_take(&store->shared.lock);
	store->shared.counts.syncs++;
	store->shared.counts.sync_ns[histogram_bucket(took_ns)]++;
	lock_give(&store->shared.lock);
	return 0;
}

int writer_sync_all(struct timerhub_store *store)
{
	int result;

	lock_take(&store->synced.lock);
	result = sync_wal(store);
	lock_give(&store->synced.lock);
	return result;
}

/*
 * A batch has two kinds of items, changes and takes. Finishes those of one kind (changes if
 * `changes` is true), and wakes the threads that wait for them. Returns a list of the items of the
 * other kind. The caller must hold synced.lock if `changes` is true.
 */
static struct work *batch_answer(struct timerhub_store *store, const struct batch *batch,
                                 struct work *works, int result, bool changes)
{
	struct work *left = NULL, **last = &left, *next;

	for (; works; works = next) {
		next = works->next;
		if (result < 0)
			works->result = result;
		works->next = NULL;
		if ((works->changes != NULL) != changes) {
			*last = works;
			last = &works->next;
		} else if (works->is_submit) {
			*store->synced.last_completed = works;
			store->synced.last_completed = &works->next;
			if (!store->synced.is_rung)
				bell_ring(store->synced.fd);
			store->synced.is_rung = true;
		} else {
			bool sleeps = works != batch->own;

			/*
			 * Do not read *works after this store. The thread that waits for the item
			 * may return at once, and the item lies on that thread's stack.
			 */
			u32_store_release(&works->state, WORK_DONE); /* [work] */
			if (sleeps)
				futex_wake(&works->state, 1);
		}
	}
	return left;
}

static void batch_finish(struct timerhub_store *store, struct batch *batch, int result)
{
	struct work *changes;

	/*
	 * A change has made a task due, so wake the thread that waits for due tasks. Relaxed: a
	 * thread that begins to wait later finds the task by itself.
	 */
	if (result == 0 && batch->making.is_due && u32_load_relaxed(&store->watch.is_taken) != 0)
		bell_ring(store->watch.bell);
	changes = batch_answer(store, batch, batch->works, result, false);
	if (changes)
		lock_take(&store->synced.lock);
	lead_hand_on(store);
	if (!changes)
		return;
	if (result == 0 && batch->is_durable)
		result = sync_wal(store);
	(void)batch_answer(store, batch, changes, result, true);
	lock_give(&store->synced.lock);
}

/* ---- the lead ---- */

/*
 * The write lock was not free in time. Puts those items back into the queue whose deadline is not
 * over yet, and leaves the others in the batch, so that they fail.
 */
static void batch_give_back(struct timerhub_store *store, struct batch *batch)
{
	struct work *late = NULL, **last_late = &late, **place = &batch->works, *work;
	uint64_t now_ns = clock_monotonic_ns();

	while ((work = *place)) {
		if (work->deadline_ns > now_ns) {
			place = &work->next;
			continue;
		}
		*place = work->next;
		work->next = NULL;
		*last_late = work;
		last_late = &work->next;
	}
	lock_take(&store->shared.lock);
	if (batch->works) {
		*place = store->shared.first;
		if (!*place)
			store->shared.last = place;
		store->shared.first = batch->works;
	}
	lock_give(&store->shared.lock);
	batch->works = late;
}

/*
 * Moves all queued items into the batch, and begins a transaction if they need one. Returns 1 if it
 * has begun one, 0 if none is needed, or a negative errno.
 */
static int batch_begin(struct timerhub_store *store, struct batch *batch)
{
	uint64_t deadline_ns = clock_monotonic_ns() + store->timeout_ns;
	struct work **last = &batch->works;
	struct look look = { INT64_MAX, INT64_MAX };
	bool has_changes = false;
	int result = 0;

	batch->works = work_take_all(store);
	for (; *last; last = &(*last)->next) {
		has_changes |= (*last)->changes != NULL;
		deadline_ns = u64_min(deadline_ns, (*last)->deadline_ns);
	}
	if (store_has_failed(store))
		result = -EIO;
	else if (batch->works)
		result = has_changes ? 1 : deliver_look(store, &look);
	for (struct work *work = batch->works; work && !has_changes; work = work->next)
		work->look = look;
	if (result <= 0)
		return result;
	result = writer_begin(store, deadline_ns);
	if (result == 0)
		*last = work_take_all(store);
	else if (result == -EAGAIN)
		batch_give_back(store, batch);
	return result < 0 ? result : 1;
}

static int wal_checkpoint(struct timerhub_store *store, sqlite3 *db, int mode, int *ret_log,
                          int *ret_copied)
{
	int result = sqlite3_wal_checkpoint_v2(db, "main", mode, ret_log, ret_copied);

	if (result != SQLITE_OK && error_of(db) == -EIO)
		store_fail(store);
	return result;
}

/*
 * Makes the next writer overwrite the WAL from its beginning, unless a reader needs the WAL. Waits
 * up to `waits_ns` for the write lock if disk space must be reserved. Only the leader calls this.
 */
static void wal_restart(struct timerhub_store *store, uint64_t waits_ns)
{
	int result =
		wal_checkpoint(store, store->statements.db, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	uint64_t used = 0;

	lock_take(&store->shared.lock);
	store->keeper.is_held_back = result == SQLITE_BUSY;
	if (result != SQLITE_OK)
		used = store->keeper.wal_bytes;
	lock_give(&store->shared.lock);
	/*
	 * Zeros at the end of the WAL reserve disk space. Append more if another program has
	 * truncated the WAL, or if it has grown because a reader keeps it from being overwritten.
	 */
	if (!files_have_room(&store->files, used) &&
	    writer_begin(store, clock_monotonic_ns() + waits_ns) == 0) {
		files_make_room(&store->files, store->frame_bytes, used);
		(void)writer_end(store, 0);
	}
}

static void writer_lead(struct timerhub_store *store, const struct work *own)
{
	struct batch batch = { .own = own,
		               .making = { .statements = &store->statements, .is_low = -1 } };
	bool restarts;
	int result;

	lock_take(&store->shared.lock);
	restarts = store->keeper.wants_restart;
	store->keeper.wants_restart = false;
	lock_give(&store->shared.lock);
	if (restarts)
		wal_restart(store, own ? 0 : RESTART_WAITS_NS);
	result = batch_begin(store, &batch);
	if (result > 0) {
		result = batch_transact(store, &batch, true);
		/* The disk is full. Try again, but without puts and takes, which need room. */
		if (result == -ENOSPC) {
			wal_restart(store, 0);
			batch.making.is_low = 1;
			result = writer_begin(store, clock_monotonic_ns() + store->timeout_ns);
			result = result < 0 ? result : batch_transact(store, &batch, false);
		}
		if (result == 0)
			batch_count(store, &batch);
	}
	batch_finish(store, &batch, result == -EBUSY ? -EAGAIN : result);
}

int writer_do(struct timerhub_store *store, struct work *work)
{
	bool leads = work_append(store, work);

	for (; leads || work_await(store, work); leads = false) {
		/*
		 * Relaxed, because only the leader writes the state of a queued item. The calling
		 * thread is the leader until writer_lead() makes another thread the leader, under a
		 * lock.
		 */
		u32_store_relaxed(&work->state, WORK_WAITS);
		writer_lead(store, work);
	}
	return work->result;
}

void writer_submit(struct timerhub_store *store, struct work *work)
{
	if (work_append(store, work))
		eventcount_advance(&store->keeper.work, 1);
}

/* ---- the keeper ---- */

int keeper_on_commit(void *context, sqlite3 *db, const char *name, int pages)
{
	struct timerhub_store *store = context;
	uint64_t bytes = (uint64_t)pages * store->frame_bytes;

	(void)db, (void)name;
	lock_take(&store->shared.lock);
	/* a shorter WAL has begun anew, so none of it is checkpointed yet */
	if (bytes < store->keeper.wal_bytes)
		store->keeper.copied_bytes = store->keeper.wakes_bytes = 0;
	store->keeper.wal_bytes = bytes;
	lock_give(&store->shared.lock);
	return SQLITE_OK;
}

/*
 * Copies the WAL into the database, while others go on writing. `seen` is how many bytes of the WAL
 * are in use, as far as the caller knows.
 */
static void keeper_checkpoint(struct timerhub_store *store, uint64_t seen)
{
	int log = -1, copied = -1, result;
	uint64_t bytes = seen;
	bool restarts;

	lock_take(&store->keeper.lock);
	result = wal_checkpoint(store, store->keeper.statements.db, SQLITE_CHECKPOINT_PASSIVE, &log,
	                        &copied);
	lock_give(&store->keeper.lock);
	/* `log` is the number of frames in the WAL, or -1 if the checkpoint could not run */
	if (log >= 0)
		bytes = (uint64_t)log * store->frame_bytes;
	restarts = !files_have_room(&store->files, bytes) ||
	           (result == SQLITE_OK && bytes >= RESTART_BYTES &&
	            copied >= log - (int)(PIECE_BYTES / store->frame_bytes));
	lock_take(&store->shared.lock);
	/* Store `bytes`, unless this process has committed meanwhile: wal_bytes is then newer. */
	if (store->keeper.wal_bytes == seen)
		store->keeper.wal_bytes = bytes;
	store->keeper.copied_bytes = bytes;
	store->keeper.is_held_back = result != SQLITE_OK || copied < log;
	store->keeper.wants_restart = restarts;
	store->shared.counts.checkpoints++;
	lock_give(&store->shared.lock);
}

/*
 * The store's own thread. It copies the WAL into the database when much has been written, or nobody
 * writes for a while.
 */
void *keeper_main(void *argument)
{
	struct timerhub_store *store = argument;
	uint64_t seen = 0;

	thread_begin();
	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	for (;;) {
		uint32_t number = eventcount_number(&store->keeper.work);
		uint64_t bytes, copied;
		bool leads, quits;

		lock_take(&store->shared.lock);
		leads = !store->shared.is_led &&
		        (store->shared.first || store->keeper.wants_restart);
		store->shared.is_led |= leads;
		quits = store->keeper.quits;
		bytes = store->keeper.wal_bytes;
		copied = store->keeper.copied_bytes;
		store->keeper.wakes_bytes = copied + (bytes > copied ? PIECE_BYTES : 1);
		lock_give(&store->shared.lock);
		if (leads) {
			writer_lead(store, NULL);
		} else if (quits) {
			return NULL;
		} else if (bytes >= copied + PIECE_BYTES || (bytes > copied && bytes == seen)) {
			keeper_checkpoint(store, bytes);
		} else {
			seen = bytes;
			eventcount_wait(&store->keeper.work, number,
			                bytes > copied ? QUIET_NS : UINT64_MAX);
		}
	}
}
