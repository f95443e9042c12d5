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
 *
 * Labels:
 * [work] work_answer, lead_hand_on → work_await: carries what the leader has written to a work
 * item, and with the lead what it has done to the connection.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "base/bell.h"
#include "base/invariant.h"
#include "base/thread.h"
#include "store/store.h"

#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000
#define TURN_MAX_NS UINT64_C(2500000000)
#define THREAD_NAME "timerhub-store"
/*
 * The store's thread checkpoints so much at a time and makes submits in between, because SQLite
 * cannot pause within a checkpoint.
 */
#define PIECE_BYTES (UINT64_C(1) << 20)
/* If the WAL is longer than this, writers wait until its last pages are copied. */
#define RESTART_BYTES (UINT64_C(2) << 20)
/*
 * After so long without a commit the rest of the WAL is checkpointed, so that on a disk that
 * becomes full the WAL can begin anew.
 */
#define QUIET_NS UINT64_C(100000000)
#define RESTART_WAITS_NS UINT64_C(1000000000)

/* ---- the queue ---- */

/*
 * Appends a work item to the queue. Returns true if nobody leads yet: the caller then must, or for
 * a submit, wake the store's thread, which leads unless somebody else comes first.
 */
static bool work_append(struct timerhub_store *store, struct work *work)
{
	bool leads;

	u32_store_relaxed(&work->state, WORK_WAITS); /* relaxed: the queue's lock publishes it */
	work->next = NULL;
	work->result = 0;
	work->is_seen = false;
	lock_take(&store->queue_of_work.lock);
	*store->queue_of_work.last = work;
	store->queue_of_work.last = &work->next;
	leads = !store->queue_of_work.is_led &&
	        (!work->is_submit || store->queue_of_work.first == work);
	store->queue_of_work.is_led |= leads && !work->is_submit;
	lock_give(&store->queue_of_work.lock);
	return leads;
}

enum taking { TAKE_ALL, TAKE_SEEN, TAKE_LATE, TAKE_LATE_CALLERS };

/* Takes work items out of the queue and returns them as a list, in their order. */
static struct work *work_take(struct timerhub_store *store, enum taking taking)
{
	struct work *taken = NULL, **last = &taken, **place = &store->queue_of_work.first, *work;
	uint64_t now_ns = clock_monotonic_ns();

	lock_take(&store->queue_of_work.lock);
	invariant(store->queue_of_work.is_led && !*store->queue_of_work.last);
	while ((work = *place)) {
		/* relaxed: it changes to WORK_LEADS only under the lock */
		bool is_late =
			work->deadline_ns <= now_ns && u32_load_relaxed(&work->state) != WORK_LEADS;

		if ((taking == TAKE_SEEN && !work->is_seen) || (taking >= TAKE_LATE && !is_late) ||
		    (taking == TAKE_LATE_CALLERS && work->is_submit)) {
			place = &work->next;
			continue;
		}
		*place = work->next;
		work->next = NULL;
		*last = work;
		last = &work->next;
	}
	store->queue_of_work.last = place;
	lock_give(&store->queue_of_work.lock);
	return taken;
}

/* Tells the thread of a work item that it is done. That thread may free the item at once. */
static void work_answer(struct work *work, bool sleeps)
{
	u32_store_release(&work->state, WORK_DONE); /* [work] */
	if (sleeps)
		futex_wake(&work->state, 1);
}

/* Waits for a work item. Returns false when it is done, or true if its thread must lead now. */
static bool work_await(struct timerhub_store *store, struct work *work)
{
	uint64_t deadline_ns = work->deadline_ns;

	for (;;) {
		uint32_t state = u32_load_acquire(&work->state); /* [work] */
		uint64_t now_ns = clock_monotonic_ns();
		struct work *late = NULL, *next;

		if (state != WORK_WAITS)
			return state == WORK_LEADS;
		if (now_ns >= deadline_ns) {
			late = work_take(store, TAKE_LATE_CALLERS);
			/*
			 * The caller's own item may not be among the late ones, because a leader is
			 * just writing it, or because this thread is the next leader. Then it waits
			 * without a limit, since that soon ends.
			 */
			deadline_ns = UINT64_MAX;
		}
		for (struct work *other = late; other; other = next) {
			next = other->next;
			other->result = -EAGAIN;
			work_answer(other, other != work);
		}
		if (!late)
			futex_wait(&work->state, WORK_WAITS,
			           deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns - now_ns);
	}
}

/*
 * Makes a thread that waits in the queue the next leader. If only submits are there, for which
 * nobody waits, the store's thread leads.
 */
static void lead_hand_on(struct timerhub_store *store)
{
	struct work *next;

	lock_take(&store->queue_of_work.lock);
	invariant(store->queue_of_work.is_led);
	for (next = store->queue_of_work.first; next && next->is_submit;)
		next = next->next;
	store->queue_of_work.is_led = next != NULL;
	if (next) {
		u32_store_release(&next->state, WORK_LEADS); /* [work] */
		futex_wake(&next->state, 1);
	} else if (store->queue_of_work.first) {
		eventcount_advance(&store->keeper.work, 1);
	}
	lock_give(&store->queue_of_work.lock);
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
	/* half of the time at most, because a stopped process may have the turn */
	uint64_t half_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / 2 : 0;
	bool waits = files_have_queue(&store->files);
	int result;

	if (!files_are_there(&store->files)) {
		store_fail(store);
		return -EIO;
	}
	for (;; waits = true) {
		if (waits && !store->has_turn)
			store->has_turn = files_take_turn(
				&store->files,
				now_ns + (half_ns < TURN_MAX_NS ? half_ns : TURN_MAX_NS));
		result = statement_run(&store->statements, DO_BEGIN, NULL, NULL);
		if (result != -EBUSY || clock_monotonic_ns() >= deadline_ns)
			break;
		if (!waits)
			continue;
		/* programs that do not use the library take no turns, so only polling helps */
		files_nap(nap_ns);
		nap_ns = nap_ns * 2 < NAP_MAX_NS ? nap_ns * 2 : NAP_MAX_NS;
	}
	if (result < 0)
		turn_give(store);
	return result == -EBUSY ? -EAGAIN : result < 0 ? result : 0;
}

int writer_end(struct timerhub_store *store, int result)
{
	if (result == 0)
		result = statement_run(&store->statements, DO_COMMIT, NULL, NULL);
	if (result < 0 && !sqlite3_get_autocommit(store->statements.db))
		(void)run_sql(store->statements.db, "ROLLBACK");
	if (result == -EIO)
		store_fail(store);
	turn_give(store);
	return result < 0 ? result : 0;
}

void store_fail(struct timerhub_store *store)
{
	u32_store_relaxed(&store->failed, EIO); /* relaxed: see store_has_failed() */
	bell_ring(store->watch.bell);
}

/* ---- a batch ---- */

struct batch {
	struct work *works;
	const struct work *own; /* the leader's own item; NULL: it has none */
	struct making making;
	bool is_durable; /* an item in it promises stable storage */
};

/* Makes the changes of one work item. Returns an error if that has ended the whole transaction. */
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

static int batch_serve(struct timerhub_store *store, struct batch *batch)
{
	bool has_begun = false;
	int result = 0;

	for (struct work *work = batch->works; work && result >= 0; work = work->next) {
		if (work->kind != WORK_TAKE)
			continue;
		if (!has_begun)
			result = deliver_begin(store);
		has_begun = true;
		if (result >= 0)
			result = deliver_serve(store, work);
		if (result >= 0 && work->result == 0)
			result = deliver_look(store, &work->look);
	}
	return result < 0 ? result : 0;
}

/*
 * Does the items of a batch in a transaction that has begun, and ends it. Takes come last, so that
 * they find what the changes put. If not `serves`, they get -ENOSPC.
 */
static int batch_transact(struct timerhub_store *store, struct batch *batch, bool serves)
{
	int result = 0;

	batch->is_durable = false;
	for (struct work *work = batch->works; work && result == 0; work = work->next)
		if (work->kind == WORK_CHANGES)
			result = batch_change(store, batch, work);
		else if (work->kind == WORK_TAKE)
			work->result = serves ? 0 : -ENOSPC;
	if (result == 0 && serves)
		result = batch_serve(store, batch);
	result = writer_end(store, result);
	for (struct work *work = batch->works; work && result < 0; work = work->next)
		deliver_undo(work);
	return result;
}

static void batch_count(struct timerhub_store *store, const struct batch *batch)
{
	for (const struct work *work = batch->works; work; work = work->next) {
		if (work->kind == WORK_TAKE && work->result > 0)
			deliver_count(store, work);
		for (unsigned i = 0; i < work->count && work->kind == WORK_CHANGES; i++)
			if (work->result == 0)
				store_count(&store->counts.done[work->changes[i].op], 1);
		if (work->kind == WORK_CHANGES && work->result == -ENOSPC)
			store_count(&store->counts.disk_full, 1);
	}
	store_count(&store->counts.commits, 1);
}

/* ---- after the commit ---- */

/* Syncs the WAL after the first `commits` transactions of this handle. Called with synced.lock. */
static int sync_commits(struct timerhub_store *store, uint64_t commits)
{
	uint64_t began_ns = clock_monotonic_ns();

	if (store_has_failed(store) || fdatasync(store->files.wal_fd) < 0) {
		store_fail(store);
		return -EIO;
	}
	invariant(store->synced.commits <= commits);
	store->synced.commits = commits;
	store_count(&store->counts.syncs, 1);
	store_count(&store->counts.sync_ns[histogram_bucket(clock_monotonic_ns() - began_ns)], 1);
	return 0;
}

int writer_sync_all(struct timerhub_store *store)
{
	int result;

	lock_take(&store->synced.lock);
	result = sync_commits(store, store->synced.commits);
	lock_give(&store->synced.lock);
	return result;
}

/*
 * Answers some items of a batch, whose transaction has ended with `result`: those with changes if
 * `changes` is true, for which the caller holds synced.lock, else the others. Returns the rest.
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
		if ((works->kind == WORK_CHANGES) != changes) {
			*last = works;
			last = &works->next;
		} else if (works->is_submit) {
			*store->synced.last_completed = works;
			store->synced.last_completed = &works->next;
			if (!store->synced.is_rung)
				bell_ring(store->synced.fd);
			store->synced.is_rung = true;
		} else {
			work_answer(works, works != batch->own);
		}
	}
	return left;
}

/* Wakes the store's thread if the WAL has grown so far that it may checkpoint. */
static void keeper_hint(struct timerhub_store *store)
{
	if (u64_load_seq_cst(&store->keeper.wal_bytes) <
	    u64_load_seq_cst(&store->keeper.wakes_bytes)) /* see keeper_sleep() */
		return;
	/* relaxed: the thread that is woken stores it anew */
	u64_store_relaxed(&store->keeper.wakes_bytes, UINT64_MAX);
	eventcount_advance(&store->keeper.work, 1);
}

static void batch_finish(struct timerhub_store *store, struct batch *batch, int result)
{
	uint64_t commits = ++store->commits;
	struct work *changes;

	for (struct work *work = batch->works; work; work = work->next)
		if (work->kind == WORK_CALL && result == 0)
			work->call(store, work->context);
	keeper_hint(store);
	/*
	 * The bell wakes a thread that watches for due tasks even if it pauses. Relaxed, because
	 * one that comes later looks anyway.
	 */
	if (result == 0 && batch->making.is_due && u32_load_relaxed(&store->watch.is_taken) != 0)
		bell_ring(store->watch.bell);
	changes = batch_answer(store, batch, batch->works, result, false);
	if (changes)
		lock_take(&store->synced.lock);
	lead_hand_on(store);
	if (!changes)
		return;
	if (result == 0 && batch->is_durable && store->synced.commits < commits)
		result = sync_commits(store, commits);
	(void)batch_answer(store, batch, changes, result, true);
	lock_give(&store->synced.lock);
}

/* ---- the lead ---- */

/*
 * Marks the items in the queue as seen, and returns a bit for each kind among them. Stores the
 * earliest of their deadlines, up to which a leader may wait for the write lock.
 */
static unsigned lead_kinds(struct timerhub_store *store, uint64_t *ret_deadline_ns)
{
	unsigned kinds = 0;

	*ret_deadline_ns = UINT64_MAX;
	lock_take(&store->queue_of_work.lock);
	for (struct work *work = store->queue_of_work.first; work; work = work->next) {
		work->is_seen = true;
		kinds |= 1u << work->kind;
		if (work->deadline_ns < *ret_deadline_ns)
			*ret_deadline_ns = work->deadline_ns;
	}
	lock_give(&store->queue_of_work.lock);
	return kinds;
}

static void writer_lead(struct timerhub_store *store, const struct work *own)
{
	struct batch batch = { .own = own,
		               .making = { .statements = &store->statements, .is_low = -1 } };
	struct look look = { INT64_MAX, INT64_MAX };
	enum taking taking = TAKE_ALL;
	uint64_t deadline_ns;
	unsigned kinds = lead_kinds(store, &deadline_ns);
	bool changes = kinds & (1u << WORK_CHANGES), begins;
	int result = changes;

	if (store_has_failed(store))
		result = -EIO;
	else if (!changes && (kinds & (1u << WORK_TAKE)))
		result = deliver_look(store, &look);
	begins = result > 0;
	if (begins)
		result = writer_begin(store, deadline_ns);
	if (begins && result == -EAGAIN)
		taking = TAKE_LATE;
	else if (!begins && !store_has_failed(store))
		taking = TAKE_SEEN; /* the look says nothing about takes that came since */
	batch.works = work_take(store, taking);
	for (struct work *work = batch.works; work; work = work->next)
		work->look = look;
	if (begins && result == 0) {
		result = batch_transact(store, &batch, true);
		/* try again without puts and takes, which need room */
		if (result == -ENOSPC && changes) {
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
		/* relaxed: others may touch it only after the lead was handed on */
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
	/* relaxed: other threads take these numbers for hints */
	if (bytes < u64_load_relaxed(&store->keeper.wal_bytes)) {
		/* the WAL has begun anew, so nothing of it is checkpointed */
		u64_store_relaxed(&store->keeper.checkpointed_bytes, 0);
		u64_store_relaxed(&store->keeper.wakes_bytes, 0);
	}
	u64_store_seq_cst(&store->keeper.wal_bytes, bytes); /* see keeper_sleep() */
	return SQLITE_OK;
}

/*
 * Makes the next writer begin the WAL anew, if no reader still needs it. The leader calls this,
 * because no other thread writes meanwhile.
 */
static void keeper_restart_wal(struct timerhub_store *store, void *unused)
{
	int result = sqlite3_wal_checkpoint_v2(store->keeper.db, "main", SQLITE_CHECKPOINT_RESTART,
	                                       NULL, NULL);

	(void)unused;
	/* relaxed: only statistics */
	u32_store_relaxed(&store->keeper.is_held_back, result == SQLITE_BUSY);
	/* another program may have truncated the WAL, with the zeros at its end */
	if (!files_have_room(&store->files) &&
	    writer_begin(store, clock_monotonic_ns() + RESTART_WAITS_NS) == 0) {
		files_make_room(&store->files, store->frame_bytes);
		(void)writer_end(store, 0);
	}
}

/*
 * Copies what it can of the WAL into the database, while other threads and processes go on writing.
 * If nearly all is copied, and the WAL is long or lacks the zeros at its end, it lets the leader
 * begin the WAL anew.
 */
static void keeper_checkpoint(struct timerhub_store *store)
{
	struct work restart = { .kind = WORK_CALL, .call = keeper_restart_wal };
	/* relaxed, as all in this function: only this thread acts on the numbers */
	uint64_t seen = u64_load_relaxed(&store->keeper.wal_bytes), bytes = seen;
	int log = -1, copied = -1, result;

	result = sqlite3_wal_checkpoint_v2(store->keeper.db, "main", SQLITE_CHECKPOINT_PASSIVE,
	                                   &log, &copied);
	if (result != SQLITE_OK && error_of(store->keeper.db) == -EIO)
		store_fail(store);
	/*
	 * If another process is checkpointing or the disk is full, act as if all were copied, and
	 * wait for more.
	 */
	if (log >= 0)
		bytes = (uint64_t)log * store->frame_bytes;
	/* another process may have begun the WAL anew since this handle's last commit */
	(void)u64_cas_relaxed(&store->keeper.wal_bytes, &seen, bytes);
	u64_store_relaxed(&store->keeper.checkpointed_bytes, bytes);
	u32_store_relaxed(&store->keeper.is_held_back, result != SQLITE_OK || copied < log);
	store_count(&store->counts.checkpoints, 1);
	if (result != SQLITE_OK || copied < log - (int)(PIECE_BYTES / store->frame_bytes) ||
	    (bytes < RESTART_BYTES && files_have_room(&store->files)))
		return;
	restart.deadline_ns = clock_monotonic_ns() + RESTART_WAITS_NS;
	(void)writer_do(store, &restart);
}

/*
 * Sleeps until there may be something to do. If a part of the WAL is not copied, that is when the
 * part is large, or when nobody has written for a while. If all is copied, it is any commit.
 *
 *   this thread               a leader
 *   wakes_bytes = so many     wal_bytes = more
 *   load wal_bytes            load wakes_bytes
 *
 * All four are seq_cst, so one of the two sees what the other did, and no commit stays in the WAL
 * while this thread sleeps.
 */
static void keeper_sleep(struct timerhub_store *store, uint32_t number, uint64_t bytes,
                         uint64_t copied)
{
	bool rests = bytes <= copied;

	u64_store_seq_cst(&store->keeper.wakes_bytes, copied + (rests ? 1 : PIECE_BYTES));
	if (u64_load_seq_cst(&store->keeper.wal_bytes) == bytes)
		eventcount_wait(&store->keeper.work, number, rests ? UINT64_MAX : QUIET_NS);
}

/* Makes the store's thread the leader if submits wait and nobody leads. Returns whether it does. */
static bool keeper_claims_lead(struct timerhub_store *store)
{
	bool claims;

	lock_take(&store->queue_of_work.lock);
	claims = store->queue_of_work.first && !store->queue_of_work.is_led;
	store->queue_of_work.is_led |= claims;
	lock_give(&store->queue_of_work.lock);
	return claims;
}

void *keeper_main(void *argument)
{
	struct timerhub_store *store = argument;
	uint64_t seen = 0;

	thread_begin();
	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	for (;;) {
		uint32_t number = eventcount_number(&store->keeper.work);
		/* relaxed: made visible by the eventcount's acquire */
		bool quits = u32_load_relaxed(&store->keeper.quits) != 0;
		uint64_t bytes = u64_load_relaxed(&store->keeper.wal_bytes);
		uint64_t copied = u64_load_relaxed(&store->keeper.checkpointed_bytes);

		if (keeper_claims_lead(store))
			writer_lead(store, NULL);
		else if (quits)
			return NULL;
		else if (bytes >= copied + PIECE_BYTES || (bytes > copied && bytes == seen))
			keeper_checkpoint(store);
		else
			keeper_sleep(store, number, seen = bytes, copied);
	}
}
