/* SPDX-License-Identifier: MIT */
/*
 * Group commit. Without a leader, a caller that adds a transaction becomes it, writes and syncs the
 * open batch, and applies it, while others fill the next. Then one of those leads, or the keeper if
 * nobody waits. One leader at most (`writing`), one batch each. The lead is given up under the
 * lock: if callers wait for the open batch, an offer is set in its eventcount, which one takes;
 * else, with other work, the keeper is woken. So each batch has a writer. Without compaction due,
 * the next leader is woken first, to keep the disk busy, then two callers of the own batch, each of
 * whom wakes two more; with it, the own callers first, then compaction, then the next leader.
 */
#define _GNU_SOURCE
#include "journal/writer.h"

#include <errno.h>

#include "base/thread.h"
#include "journal/delivery.h"
#include "journal/log_append.h"
#include "journal/transaction.h"

#define WAKE_FEW 2
#define TAKES_WAIT_NS (UINT64_C(10) * 1000000)

/*
 * in a batch's eventcount: one of its callers may lead; above: the last finished batch that used it
 */
#define TICKET_OFFER 1u
#define TICKET_SHIFT 1

/* ---- callers ---- */

static struct eventcount *writer_eventcount(struct group_commit *commit, uint32_t number)
{
	return &commit->finished[number % JOURNAL_FINISHED];
}

static bool writer_has_finished(uint32_t value, uint32_t number)
{
	return (int32_t)((value & ~TICKET_OFFER) - (number << TICKET_SHIFT)) >= 0;
}

bool writer_may_lead(struct timerhub_journal *journal)
{
	if (!journal->threaded || journal->commit.writing)
		return false;
	journal->commit.writing = true;
	return true;
}

/* Become the leader, unless another thread has accepted the offer to lead. */
static bool writer_accept(struct timerhub_journal *journal)
{
	bool leads;

	lock_take(&journal->lock);
	leads = writer_may_lead(journal);
	lock_give(&journal->lock);
	if (leads)
		writer_lead(journal, false);
	return leads;
}

void writer_await(struct timerhub_journal *journal, uint32_t number)
{
	struct eventcount *eventcount = writer_eventcount(&journal->commit, number);
	uint32_t value = eventcount_number(eventcount);
	bool waited = false;

	if (!journal->threaded)
		(void)writer_pass(journal);
	while (journal->threaded && !writer_has_finished(value, number)) {
		if ((value & TICKET_OFFER) == 0 || !writer_accept(journal)) {
			eventcount_wait(eventcount, value, UINT64_MAX);
			waited = true;
		}
		value = eventcount_number(eventcount);
	}
	if (waited)
		eventcount_wake(eventcount, WAKE_FEW);
}

/* ---- the keeper's work ---- */

bool writer_kick(struct timerhub_journal *journal)
{
	if (journal->commit.writing || journal->keeper.called)
		return false;
	journal->keeper.called = true;
	eventcount_set(&journal->keeper.work, eventcount_number(&journal->keeper.work) + 1);
	return true;
}

bool writer_remind(struct timerhub_journal *journal)
{
	if (journal->commit.writing || journal->keeper.flush_ns != UINT64_MAX)
		return false;
	journal->keeper.flush_ns =
		journal->timer->ops->monotonic_ns(journal->timer) + TAKES_WAIT_NS;
	return writer_kick(journal);
}

/* ---- a batch ---- */

/* Returns why compaction does not run although it would free room. */
static enum timerhub_journal_held_up writer_held_up(const struct compactor *compactor)
{
	if (compactor->blocked)
		return TIMERHUB_JOURNAL_BY_DISK;
	if (compactor->wanted && compactor->pauses > 0)
		return TIMERHUB_JOURNAL_BY_BACKUP;
	return TIMERHUB_JOURNAL_NOT_HELD_UP;
}

/* Counters of log and compactor, for other threads. Under the lock. */
static void writer_publish(struct timerhub_journal *journal)
{
	journal->failed = journal->log.failed;
	journal->stats.disk_bytes = log_disk_bytes(&journal->log);
	journal->stats.segments = journal->log.count;
	journal->stats.syncs = journal->log.syncs;
	journal->stats.copied_bytes = journal->compactor.copied_bytes;
	journal->stats.segments_dropped = journal->compactor.dropped;
	journal->stats.healed = journal->compactor.healed;
	journal->stats.held_up = writer_held_up(&journal->compactor);
}

bool writer_must_write(struct timerhub_journal *journal)
{
	const struct write_batch *batch = state_open_batch(&journal->commit);
	bool flush = journal->commit.flush || journal->keeper.stopping || !journal->threaded;

	return batch->first || (batch->used > 0 && flush);
}

/*
 * And opens the other. NULL: nothing to write. `*ret_ends_bytes`: the records that will end all
 * tasks.
 */
static struct write_batch *writer_take_batch(struct timerhub_journal *journal,
                                             uint64_t *ret_ends_bytes)
{
	struct write_batch *full = state_open_batch(&journal->commit);
	uint32_t next = full->number + 1;

	*ret_ends_bytes = journal->backlog.tasks.count * (uint64_t)RECORD_HEADER_BYTES;
	if (!writer_must_write(journal))
		return NULL;
	/* an earlier batch's callers first: no wake-up may go to the wrong batch's */
	eventcount_wake(writer_eventcount(&journal->commit, next), UINT32_MAX);
	journal->commit.open ^= 1;
	journal->commit.flush = false;
	write_batch_begin(state_open_batch(&journal->commit), next);
	return full;
}

/*
 * First room in the spare for the records that end the live tasks; refused, transactions with puts
 * are. Without room for the batch, only those that end tasks stay, for which the spare shrinks.
 * Returns the refused ones, and why.
 */
static struct transaction *writer_write(struct log *log, struct write_batch *batch,
                                        uint64_t ends_bytes, int *ret_result, int *ret_refusal,
                                        struct log_position *ret_position)
{
	unsigned how = batch->first ? LOG_SYNC : 0;
	int reserved = log->failed < 0 ? 0 : log_reserve(log, ends_bytes);
	struct transaction *out = NULL, **end = &out;

	*ret_refusal = reserved;
	*ret_result = 0;
	if (reserved < 0)
		out = write_batch_take_out(batch, false);
	if (batch->used > 0)
		*ret_result = log_append(log, batch->bytes, batch->used, how, ret_position);
	if (!log_is_full(*ret_result))
		return out;
	*ret_refusal = *ret_result;
	while (*end)
		end = &(*end)->next;
	*end = write_batch_take_out(batch, true);
	*ret_result = 0;
	if (batch->used > 0)
		*ret_result =
			log_append(log, batch->bytes, batch->used, how | LOG_SPARE, ret_position);
	return out;
}

/* Result of writer_commit(), the write of one batch by the leader. */
struct turn {
	uint32_t number; /* number of the batch that was written */
	size_t bytes;
	bool worked; /* a batch was written */
	bool shared; /* more than one caller waits for the batch */
};

/* With its counters and the timer. Under the lock. */
static void writer_end_batch(struct timerhub_journal *journal, const struct write_batch *batch,
                             int result, uint64_t begin_ns)
{
	uint64_t now_ns = journal->timer->ops->monotonic_ns(journal->timer);

	if (result == 0 && batch->used > 0) {
		journal->stats.batches++;
		journal->stats.records += batch->records;
	}
	if (result == 0 && batch->first)
		journal->stats.sync_ns[state_bucket(now_ns - begin_ns)]++;
	state_set_timer(journal);
	writer_publish(journal);
	eventcount_set(writer_eventcount(&journal->commit, batch->number),
	               batch->number << TICKET_SHIFT);
}

/* If it must be written; writer_wake() then wakes its callers. */
static struct turn writer_commit(struct timerhub_journal *journal)
{
	struct turn turn = { .bytes = 0 };
	struct log_position position = { 0, 0 };
	struct transaction *refused;
	struct write_batch *batch;
	uint64_t ends_bytes, begin_ns;
	int result, refusal;
	bool ring;

	lock_take(&journal->lock);
	delivery_end_leases(journal);
	batch = writer_take_batch(journal, &ends_bytes);
	/* for the header of a segment that may begin: later ids come behind it */
	journal->log.next_id = journal->backlog.next_id;
	lock_give(&journal->lock);
	if (!batch)
		return turn;
	turn = (struct turn){ batch->number, batch->used, true, batch->waiting > 1 };
	begin_ns = journal->timer->ops->monotonic_ns(journal->timer);
	refused = writer_write(&journal->log, batch, ends_bytes, &result, &refusal, &position);
	if (result == 0 && batch->used > 0)
		journal->compactor.blocked = false;
	lock_take(&journal->lock);
	transaction_end(journal, batch->first, result, &position);
	transaction_end(journal, refused, refusal, &position);
	journal->stats.disk_full += (refused && log_is_full(refusal)) || log_is_full(result);
	writer_end_batch(journal, batch, result, begin_ns);
	ring = completions_must_ring(&journal->completions);
	lock_give(&journal->lock);
	if (ring)
		completions_ring(&journal->completions);
	return turn;
}

static void writer_wake(struct timerhub_journal *journal, const struct turn *turn)
{
	if (turn->worked)
		eventcount_wake(writer_eventcount(&journal->commit, turn->number), WAKE_FEW);
}

bool writer_pass(struct timerhub_journal *journal)
{
	struct turn turn = writer_commit(journal);
	bool compacted = compactor_work(&journal->compactor, turn.bytes, true);

	lock_take(&journal->lock);
	writer_publish(journal);
	lock_give(&journal->lock);
	return turn.worked || compacted;
}

/* ---- leading ---- */

/* Returns where the next leader sleeps, or NULL. */
static struct eventcount *writer_hand_over(struct timerhub_journal *journal)
{
	const struct write_batch *batch = state_open_batch(&journal->commit);
	struct eventcount *eventcount = writer_eventcount(&journal->commit, batch->number);

	journal->commit.writing = false;
	if (batch->waiting > 0) {
		eventcount_set(eventcount, eventcount_number(eventcount) | TICKET_OFFER);
		return eventcount;
	}
	if (journal->keeper.compacts || writer_must_write(journal))
		return writer_kick(journal) ? &journal->keeper.work : NULL;
	return batch->used > 0 && writer_remind(journal) ? &journal->keeper.work : NULL;
}

static void writer_leave(struct timerhub_journal *journal, bool compacts)
{
	struct eventcount *next;

	lock_take(&journal->lock);
	journal->keeper.compacts = compacts;
	writer_publish(journal);
	next = writer_hand_over(journal);
	lock_give(&journal->lock);
	if (next)
		eventcount_wake(next, 1);
}

/*
 * A batch and compaction, which a single caller leaves to the keeper, unless changes wait for it
 * (compactor.h).
 */
static void writer_lead_once(struct timerhub_journal *journal, bool keeper)
{
	struct turn turn = writer_commit(journal);
	bool compacts = compactor_is_due(&journal->compactor);

	if (!compacts) {
		writer_leave(journal, false);
		writer_wake(journal, &turn);
		return;
	}
	writer_wake(journal, &turn);
	(void)compactor_work(&journal->compactor, turn.bytes, keeper || turn.shared);
	writer_leave(journal, compactor_is_due(&journal->compactor));
}

void writer_lead(struct timerhub_journal *journal, bool keeper)
{
	sigset_t before;
	int cancel;

	/* no handler may delay those who wait, and no cancellation end the leader in a call */
	thread_hold_signals(&before);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	writer_lead_once(journal, keeper);
	(void)pthread_setcancelstate(cancel, NULL);
	thread_release_signals(&before);
}

/* ---- making a transaction ---- */

/* Under the lock, which is free meanwhile. */
static void writer_make_way(struct timerhub_journal *journal, uint32_t number)
{
	bool leads = writer_may_lead(journal);

	/* so that even what nobody waits for is written */
	journal->commit.flush = true;
	lock_give(&journal->lock);
	if (leads)
		writer_lead(journal, false);
	writer_await(journal, number);
	lock_take(&journal->lock);
}

int writer_make(struct timerhub_journal *journal, struct transaction *transaction, bool may_wait,
                unsigned *ret_index, uint32_t *ret_number)
{
	uint32_t number = 0;
	bool wake = false, leads = false;
	int result;

	lock_take(&journal->lock);
	for (;;) {
		delivery_end_leases(journal);
		result = transaction_check(journal, transaction, &number, ret_index);
		if (result <= 0 || !may_wait)
			break;
		writer_make_way(journal, number);
	}
	if (result > 0) { /* in the way is perhaps what nobody waits for */
		journal->commit.flush = true;
		journal->completions.wanted = true;
		wake = writer_kick(journal);
	}
	if (result == 0) {
		*ret_number = state_open_batch(&journal->commit)->number;
		transaction_begin(journal, transaction);
		leads = may_wait && writer_may_lead(journal);
		wake = !may_wait && writer_kick(journal);
	}
	lock_give(&journal->lock);
	if (wake)
		eventcount_wake(&journal->keeper.work, 1);
	if (leads)
		writer_lead(journal, false);
	return result > 0 ? -EAGAIN : result;
}
