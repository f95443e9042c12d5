/* SPDX-License-Identifier: MIT */
/*
 * A thread that wants something done appends it to a queue. If nobody leads, it leads: it waits for
 * the write lock, and only then takes the whole queue, so that what came meanwhile goes along. All
 * of it is one transaction, which also hands out what is due to the takers that wait.
 *
 * COMMIT does not sync (synchronous=NORMAL). The leader syncs the WAL itself when it has given the
 * write lock back, so that other processes go on meanwhile. That is as durable as a sync within
 * COMMIT: a frame of the WAL is lost only by a loss of power before the sync, and a checkpoint
 * syncs the WAL before it copies. At most one batch is synced, one waits to be, and one gathers:
 * the lead is handed on when it is the batch's turn to be synced, because batches would be small
 * otherwise.
 *
 * Labels:
 * [work] work_answer → work_await: carries what the leader has written to a work item.
 */
#include "store/writer.h"

#include "base/bell.h"
#include "base/invariant.h"
#include "store/takers.h"

#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000
#define TURN_MAX_NS UINT64_C(2500000000)
#define PIECE_BYTES (UINT64_C(1) << 20)

/* ---- the queue ---- */

/*
 * Appends a work item to the queue. Returns true if the calling thread leads now. Nobody waits for
 * a submit, so the store's thread is to lead for it; that thread may just be about to append an
 * item of its own, and then leads with that.
 */
static bool work_append(struct timerhub_store *store, struct work *work)
{
	bool leads;

	/* relaxed: the lock's release makes it visible */
	u32_store_relaxed(&work->state, WORK_WAITS);
	work->next = NULL;
	work->is_at_leader = false;
	lock_take(&store->queue_of_work.lock);
	*store->queue_of_work.last = work;
	store->queue_of_work.last = &work->next;
	leads = !store->queue_of_work.is_led;
	store->queue_of_work.is_led = true;
	/* relaxed, both: the lock's and the eventcount's release make them visible */
	if (leads && work->is_submit)
		u32_store_relaxed(&store->keeper.leads, 1);
	else if (work->kind == WORK_RESTART_WAL)
		leads |= u32_exchange_relaxed(&store->keeper.leads, 0) != 0;
	lock_give(&store->queue_of_work.lock);
	return leads;
}

/* Removes a work item from the queue. Called with the lock. */
static void work_remove(struct timerhub_store *store, struct work *work)
{
	struct work **place = &store->queue_of_work.first;

	while (*place != work) {
		invariant(*place); /* it is in the queue, since no leader has it */
		place = &(*place)->next;
	}
	*place = work->next;
	if (!*place)
		store->queue_of_work.last = place;
}

/*
 * Takes the work items out of the queue and returns them as a list, in their order. If
 * `changes_too` is false, it takes only those that look or read, and leaves the changes
 * (WORK_CHANGES) in the queue.
 */
static struct work *work_take(struct timerhub_store *store, bool changes_too)
{
	struct work *taken = NULL, **last = &taken, **place = &store->queue_of_work.first, *work;

	lock_take(&store->queue_of_work.lock);
	invariant(store->queue_of_work.is_led && !*store->queue_of_work.last);
	while ((work = *place)) {
		if (work->kind == WORK_CHANGES && !changes_too) {
			place = &work->next;
			continue;
		}
		work->is_at_leader = true;
		*place = work->next;
		work->next = NULL;
		*last = work;
		last = &work->next;
	}
	store->queue_of_work.last = place;
	lock_give(&store->queue_of_work.lock);
	return taken;
}

/*
 * Gives a work item back to the thread that waits for it. That thread may free its memory at once,
 * so the caller must not use the item any more.
 */
static void work_answer(struct work *work)
{
	u32_store_release(&work->state, WORK_DONE); /* [work] */
	futex_wake(&work->state, 1);
}

/*
 * Makes a caller that waits in the queue the next leader, or the store's own thread if the queue
 * has only submits, for which nobody waits. If the queue is empty, nobody leads.
 */
static void lead_hand_on(struct timerhub_store *store)
{
	struct work *next;

	lock_take(&store->queue_of_work.lock);
	invariant(store->queue_of_work.is_led);
	for (next = store->queue_of_work.first; next && next->is_submit;)
		next = next->next;
	if (next) {
		u32_store_release(&next->state, WORK_LEADS); /* [work] */
		futex_wake(&next->state, 1);
	} else if (store->queue_of_work.first) {
		/* relaxed: the eventcount's release makes it visible */
		u32_store_relaxed(&store->keeper.leads, 1);
		eventcount_advance(&store->keeper.work, 1);
	} else {
		store->queue_of_work.is_led = false;
	}
	lock_give(&store->queue_of_work.lock);
}

/*
 * Takes a work item back out of the queue because its timeout has passed. Returns false, and does
 * nothing, if a leader has taken the item already or its thread was told to lead.
 */
static bool work_give_up(struct timerhub_store *store, struct work *work)
{
	bool gives_up;

	lock_take(&store->queue_of_work.lock);
	/* relaxed: the state becomes WORK_LEADS under the lock */
	gives_up = !work->is_at_leader && u32_load_relaxed(&work->state) == WORK_WAITS;
	if (gives_up)
		work_remove(store, work);
	lock_give(&store->queue_of_work.lock);
	return gives_up;
}

/*
 * Waits until a work item is done, or its thread is told to lead. Returns WORK_LEADS or WORK_DONE.
 */
static uint32_t work_await(struct timerhub_store *store, struct work *work)
{
	uint64_t now_ns, left_ns = UINT64_MAX;
	bool is_limited = true;

	for (;;) {
		uint32_t state = u32_load_acquire(&work->state); /* [work] */

		if (state != WORK_WAITS)
			return state;
		now_ns = clock_monotonic_ns();
		if (is_limited && now_ns >= work->deadline_ns) {
			if (work_give_up(store, work)) {
				work->result = -EAGAIN;
				return WORK_DONE;
			}
			is_limited = false;
			continue;
		}
		left_ns = is_limited && work->deadline_ns != UINT64_MAX ? work->deadline_ns - now_ns
		                                                        : UINT64_MAX;
		futex_wait(&work->state, WORK_WAITS, left_ns);
	}
}

/* ---- the transaction ---- */

static int connection_run(struct timerhub_store *store, enum statement which)
{
	int result = statement_run_numbers(&store->statements, which, 0, NULL);

	return result < 0 ? result : 0;
}

/*
 * Returns until when to wait for the turn: half of the time, because a process that is stopped may
 * have it, or a forked child of one that has died.
 */
static uint64_t turn_deadline_ns(uint64_t deadline_ns)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t half_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / 2 : 0;

	return now_ns + (half_ns < TURN_MAX_NS ? half_ns : TURN_MAX_NS);
}

int writer_begin(struct timerhub_store *store, uint64_t deadline_ns)
{
	int result;

	if (!files_are_there(&store->files)) {
		store_fail(store);
		return -EIO;
	}
	files_take_turn(&store->files, turn_deadline_ns(deadline_ns));
	/* programs that write without the library take no turn */
	for (uint64_t nap_ns = NAP_MIN_NS; (result = connection_run(store, DO_BEGIN)) == -EBUSY;) {
		if (clock_monotonic_ns() >= deadline_ns)
			break;
		files_nap(nap_ns);
		nap_ns = nap_ns * 2 < NAP_MAX_NS ? nap_ns * 2 : NAP_MAX_NS;
	}
	if (result < 0)
		files_give_turn(&store->files);
	return result == -EBUSY ? -EAGAIN : result;
}

/* Commits if `result` is 0, else rolls back. Returns 0 or the error. */
int writer_end(struct timerhub_store *store, int result)
{
	if (result == 0)
		result = connection_run(store, DO_COMMIT);
	if (result < 0 && !sqlite3_get_autocommit(store->statements.db))
		(void)sqlite3_exec(store->statements.db, "ROLLBACK", NULL, NULL, NULL);
	if (result == -EIO)
		store_fail(store);
	files_give_turn(&store->files);
	return result;
}

/* ---- a batch ---- */

struct batch {
	struct work *works;
	struct taker *takers;
	uint64_t puts_refused;
	bool has_changes, is_durable, is_full;
};

static bool batch_refuses(struct timerhub_store *store, struct batch *batch, struct work *work)
{
	if (!changes_have_put(work->changes, work->count))
		return false;
	if (!batch->is_full)
		batch->is_full = store_disk_is_low(store);
	if (batch->is_full) {
		work->result = -ENOSPC;
		batch->puts_refused++;
	}
	return batch->is_full;
}

/* Makes the changes of a batch. Returns an error if that has ended the whole transaction. */
static int batch_make_changes(struct timerhub_store *store, struct batch *batch)
{
	struct changing changing;

	changing_init(&changing, store, &store->statements);
	for (struct work *work = batch->works; work; work = work->next) {
		if (work->kind != WORK_CHANGES || batch_refuses(store, batch, work))
			continue;
		changing.now_us = work->now_us;
		work->result = changes_make(&changing, work->changes, work->count);
		if (sqlite3_get_autocommit(store->statements.db))
			return work->result < 0 ? work->result : -EIO;
		if (work->result == -EIO || work->result == -ENOSPC || work->result == -ENOMEM)
			return work->result;
		batch->is_durable |= work->result == 0 && work->changes->op != STORE_TOUCH;
	}
	return 0;
}

static int batch_look(struct timerhub_store *store, struct batch *batch)
{
	struct look look;
	int result = 0;

	for (struct work *work = batch->works; work && result >= 0; work = work->next) {
		if (work->kind != WORK_LOOK)
			continue;
		if (result == 0)
			result = deliver_look(store, &look);
		if (result >= 0) {
			work->look = look;
			work->result = 0;
			result = 1;
		}
	}
	return result < 0 ? result : 0;
}

static int batch_transact(struct timerhub_store *store, struct batch *batch)
{
	int result = batch_make_changes(store, batch);

	if (result == 0 && batch->takers)
		result = deliver_serve(store, batch->takers);
	if (result == 0)
		result = batch_look(store, batch);
	result = writer_end(store, result);
	if (result < 0)
		deliver_undo(batch->takers);
	return result;
}

/* Tries again after a transaction for which the disk had no room, without what needs room. */
static int batch_transact_again(struct timerhub_store *store, struct batch *batch)
{
	struct taker *takers = batch->takers;
	int result = writer_begin(store, clock_monotonic_ns() + store->timeout_ns);

	if (result < 0)
		return result;
	batch->is_full = true;
	batch->is_durable = false;
	batch->takers = NULL;
	result = batch_transact(store, batch);
	batch->takers = takers;
	return result;
}

static void batch_count(struct timerhub_store *store, const struct batch *batch)
{
	for (const struct work *work = batch->works; work; work = work->next)
		for (unsigned i = 0; i < work->count && work->result == 0; i++)
			(void)u64_fetch_add_relaxed(&store->counts.done[work->changes[i].op], 1);
	deliver_count(store, batch->takers);
	(void)u64_fetch_add_relaxed(&store->counts.commits, 1);
	(void)u64_fetch_add_relaxed(&store->counts.disk_full, batch->puts_refused);
}

/*
 * Does a batch within the transaction that the leader has begun. An error is that of every item in
 * it.
 */
static int batch_run(struct timerhub_store *store, struct batch *batch)
{
	int result;

	batch->works = work_take(store, true);
	batch->takers = takers_pop(store);
	for (struct work *work = batch->works; work; work = work->next)
		batch->has_changes |= work->kind == WORK_CHANGES;
	result = batch_transact(store, batch);
	if (result == -ENOSPC && batch->has_changes)
		result = batch_transact_again(store, batch);
	if (result == 0)
		batch_count(store, batch);
	else if (result != -ENOSPC) /* else they wait */
		for (struct taker *taker = batch->takers; taker; taker = taker->next)
			taker->result = result;
	takers_settle(store, batch->takers);
	return result;
}

/* ---- after the commit ---- */

/* Syncs the WAL unless so many commits are on stable storage already. Called with synced.lock. */
static int sync_commits(struct timerhub_store *store, uint64_t commits)
{
	uint64_t began_ns = clock_monotonic_ns();
	int result = store_has_failed(store) ? -EIO : files_sync(&store->files);

	if (result < 0) {
		store_fail(store);
		return result;
	}
	invariant(store->synced.commits <= commits);
	store->synced.commits = commits;
	(void)u64_fetch_add_relaxed(&store->counts.syncs, 1);
	store_count_time(store->counts.sync_ns, clock_monotonic_ns() - began_ns);
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

static void submits_complete(struct timerhub_store *store, struct work *work)
{
	work->next = NULL;
	*store->synced.last_completed = work;
	store->synced.last_completed = &work->next;
	if (store->synced.fd >= 0 && !store->synced.is_rung) {
		store->synced.is_rung = true;
		bell_ring(store->synced.fd);
	}
}

/*
 * Answers the items of a batch, whose result as a whole is `result`. Called with synced.lock if
 * there are submits.
 */
static void batch_answer(struct timerhub_store *store, struct work *works, int result)
{
	struct work *next;

	for (; works; works = next) {
		next = works->next;
		if (result < 0 || works->kind != WORK_CHANGES)
			works->result = result;
		if (works->is_submit)
			submits_complete(store, works);
		else
			work_answer(works);
	}
}

/*
 * Wakes the store's thread if there is something for it to checkpoint: enough has been written, or
 * it rests.
 */
static void keeper_hint(struct timerhub_store *store)
{
	/* relaxed: the thread reads it again within 0.1 s, unless it rests */
	uint64_t bytes = u64_load_relaxed(&store->keeper.wal_bytes);

	/* seq_cst, as on_commit()'s store before it: see keeper_sleep() */
	if (u32_load_seq_cst(&store->keeper.rests) == 0 &&
	    bytes - u64_load_relaxed(&store->keeper.checkpointed_bytes) < PIECE_BYTES)
		return;
	if (u32_exchange_relaxed(&store->keeper.rests, 0) != 0 ||
	    u32_exchange_relaxed(&store->keeper.hinted, 1) == 0)
		eventcount_advance(&store->keeper.work, 1);
}

static void batch_finish(struct timerhub_store *store, struct batch *batch, int result)
{
	uint64_t commits = ++store->commits;

	for (struct work *work = batch->works; work; work = work->next)
		if (work->kind == WORK_READ && result == 0)
			work->read(store, work->context);
	if (!batch->has_changes) {
		batch_answer(store, batch->works, result);
		lead_hand_on(store);
		return;
	}
	keeper_hint(store);
	lock_take(&store->synced.lock);
	lead_hand_on(store);
	if (result == 0 && batch->is_durable && store->synced.commits < commits)
		result = sync_commits(store, commits);
	batch_answer(store, batch->works, result);
	lock_give(&store->synced.lock);
}

/* ---- the lead ---- */

/* What the items in the queue ask for, before a transaction is begun. */
struct wanted {
	bool changes, restart, has_look;
	uint64_t deadline_ns;
};

static struct wanted lead_wanted(struct timerhub_store *store, const struct work *own)
{
	struct wanted wanted = { .deadline_ns = own ? own->deadline_ns : UINT64_MAX };

	lock_take(&store->queue_of_work.lock);
	for (struct work *work = store->queue_of_work.first; work; work = work->next) {
		wanted.changes |= work->kind == WORK_CHANGES;
		wanted.restart |= work->kind == WORK_RESTART_WAL;
		wanted.has_look |= work->kind == WORK_LOOK;
		if (!own && work->deadline_ns < wanted.deadline_ns)
			wanted.deadline_ns = work->deadline_ns;
	}
	lock_give(&store->queue_of_work.lock);
	return wanted;
}

/* Answers the items whose time is over, because the write lock did not come in time. */
static void lead_expire(struct timerhub_store *store, const struct look *look)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct work *all = work_take(store, true), *late = NULL, **last = &late, *next;

	lock_take(&store->synced.lock);
	lock_take(&store->queue_of_work.lock);
	for (; all; all = next) {
		next = all->next;
		all->next = NULL;
		all->is_at_leader = false;
		if (all->deadline_ns <= now_ns) {
			all->look = *look;
			all->result = -EAGAIN;
			*last = all;
			last = &all->next;
		} else {
			*store->queue_of_work.last = all;
			store->queue_of_work.last = &all->next;
		}
	}
	lock_give(&store->queue_of_work.lock);
	batch_answer(store, late, -EAGAIN);
	lock_give(&store->synced.lock);
}

/* Makes the next writer begin the WAL anew, if no reader still needs it. */
static void lead_restart_wal(struct timerhub_store *store, uint64_t deadline_ns)
{
	int result = sqlite3_wal_checkpoint_v2(store->keeper.db, "main", SQLITE_CHECKPOINT_RESTART,
	                                       NULL, NULL);

	/* relaxed: statistics */
	u32_store_relaxed(&store->keeper.is_held_back, result == SQLITE_BUSY);
	/* somebody may have truncated the WAL, and thereby taken its room away */
	if (!files_have_room(&store->files) && writer_begin(store, deadline_ns) == 0) {
		files_make_room(&store->files, store->keeper.frame_bytes);
		(void)writer_end(store, 0);
	}
}

static void writer_lead(struct timerhub_store *store, const struct work *own)
{
	struct batch batch = { .works = NULL };
	struct wanted wanted = lead_wanted(store, own);
	struct look look = { INT64_MAX, INT64_MAX };
	int result = store_has_failed(store) ? -EIO : 0;

	if (result == 0 && wanted.restart)
		lead_restart_wal(store, wanted.deadline_ns);
	if (result == 0 && !wanted.changes)
		result = wanted.has_look ? deliver_look(store, &look) : 0;
	if (result == 1 || (result == 0 && wanted.changes)) {
		result = writer_begin(store, wanted.deadline_ns);
		if (result == -EAGAIN) {
			lead_expire(store, &look);
			lead_hand_on(store);
			return;
		}
		if (result == 0) {
			result = batch_run(store, &batch);
			batch_finish(store, &batch, result);
			return;
		}
	}
	if (result == -EBUSY)
		result = -EAGAIN;
	/* if nothing is due or nothing can be done, there may still be changes that came since */
	batch.has_changes = store_has_failed(store) || wanted.changes;
	batch.works = work_take(store, batch.has_changes);
	for (struct work *work = batch.works; work; work = work->next)
		work->look = look;
	batch_finish(store, &batch, result);
}

void writer_lead_for_submits(struct timerhub_store *store)
{
	writer_lead(store, NULL);
}

int writer_do(struct timerhub_store *store, struct work *work)
{
	bool leads = work_append(store, work);

	/* each lead either does the thread's own item or lets it give up */
	if (leads || work_await(store, work) == WORK_LEADS)
		writer_lead(store, work);
	return work->result;
}

void writer_submit(struct timerhub_store *store, struct work *work)
{
	work->is_submit = true;
	if (work_append(store, work))
		eventcount_advance(&store->keeper.work, 1);
}
