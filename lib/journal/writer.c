/* SPDX-License-Identifier: MIT */
/*
 * Implements group commit (writer.h). If there is no leader, a caller that adds a transaction
 * becomes the leader. The leader writes and syncs the open batch and applies the batch to the
 * tasks. While the leader writes, other callers fill the next batch. When the leader has finished,
 * a caller of the next batch becomes the leader. If no caller waits for the open batch, the keeper
 * (keeper.c) becomes the leader.
 *
 * There is at most one leader (the field `writing`), and a leader writes one batch. The leader
 * gives up the lead under the journal's lock. If callers wait for the open batch, the stopping
 * leader sets an offer in the batch's eventcount. A caller then becomes the leader. If no caller
 * waits and there is other work, the stopping leader wakes the keeper. Therefore each batch has a
 * thread that writes it.
 *
 * If no compaction is due, the stopping leader wakes the next leader first, to keep the disk busy.
 * Then the stopping leader wakes two callers of its own batch. If compaction is due, the leader
 * wakes two callers of its batch, compacts, and wakes the next leader last. In writer_await(), each
 * woken caller wakes two more callers of the batch.
 */
#define _GNU_SOURCE
#include "journal/writer.h"

#include <errno.h>
#include <signal.h>

#include "journal/delivery.h"
#include "journal/transaction.h"

#define WAKE_FEW 2
#define TAKES_WAIT_NS (UINT64_C(10) * 1000000)

/*
 * The offer to lead, a bit in the eventcount of a batch. If the offer is set, one of the batch's
 * callers may become the leader. The higher bits of the eventcount hold the number of the last
 * finished batch that used the eventcount.
 */
#define TICKET_OFFER 1u
#define TICKET_SHIFT 1

/* ---- callers ---- */

static struct eventcount *writer_eventcount(struct timerhub_journal *journal, uint32_t number)
{
	return &journal->finished[number % JOURNAL_FINISHED];
}

static bool writer_has_finished(uint32_t value, uint32_t number)
{
	return (int32_t)((value & ~TICKET_OFFER) - (number << TICKET_SHIFT)) >= 0;
}

bool writer_may_lead(struct timerhub_journal *journal)
{
	if (!journal->threaded || journal->writing)
		return false;
	journal->writing = true;
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
	struct eventcount *eventcount = writer_eventcount(journal, number);
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
	if (journal->writing || journal->called)
		return false;
	journal->called = true;
	eventcount_set(&journal->work, eventcount_number(&journal->work) + 1);
	return true;
}

bool writer_remind(struct timerhub_journal *journal)
{
	if (journal->writing || journal->flush_ns != UINT64_MAX)
		return false;
	journal->flush_ns = journal->timer->ops->monotonic_ns(journal->timer) + TAKES_WAIT_NS;
	return writer_kick(journal);
}

/* ---- a batch ---- */

/* Returns why compaction does not run although it would free room. */
static enum timerhub_journal_held_up writer_held_up(const struct timerhub_journal *journal)
{
	if (journal->compactor.blocked)
		return TIMERHUB_JOURNAL_BY_DISK;
	if (journal->compactor.wanted && journal->compactor.pauses > 0)
		return TIMERHUB_JOURNAL_BY_BACKUP;
	return TIMERHUB_JOURNAL_NOT_HELD_UP;
}

/*
 * Copy counters of log and compactor to the journal's statistics, where other threads read them.
 * The caller holds the journal's lock.
 */
static void writer_publish(struct timerhub_journal *journal)
{
	journal->failed = journal->log.failed;
	journal->stats.disk_bytes = log_disk_bytes(&journal->log);
	journal->stats.segments = journal->log.count;
	journal->stats.syncs = journal->log.syncs;
	journal->stats.copied_bytes = journal->compactor.copied_bytes;
	journal->stats.segments_dropped = journal->compactor.dropped;
	journal->stats.healed = journal->compactor.healed;
	journal->stats.held_up = writer_held_up(journal);
}

bool writer_must_write(struct timerhub_journal *journal)
{
	const struct write_batch *batch = state_open_batch(journal);
	bool flush = journal->flush || journal->stopping || !journal->threaded;

	return batch->first || (batch->used > 0 && flush);
}

/*
 * Close the open batch, and open the other batch of journal->batches. Returns the closed batch, or
 * NULL if there is nothing to write. `*ret_ends_bytes` is the number of bytes of the records that
 * will end all tasks.
 */
static struct write_batch *writer_take_batch(struct timerhub_journal *journal,
                                             uint64_t *ret_ends_bytes)
{
	struct write_batch *full = state_open_batch(journal);
	uint32_t next = full->number + 1;

	*ret_ends_bytes = journal->tasks.count * (uint64_t)RECORD_HEADER_BYTES;
	if (!writer_must_write(journal))
		return NULL;
	/*
	 * The next batch reuses the eventcount of an earlier batch. Wake all callers of the earlier
	 * batch first, so that no wake-up goes to a caller of the wrong batch.
	 */
	eventcount_wake(writer_eventcount(journal, next), UINT32_MAX);
	journal->open_batch ^= 1;
	journal->flush = false;
	write_batch_begin(state_open_batch(journal), next);
	return full;
}

/*
 * Write a batch. First reserve room in the spare for the records that will end the live tasks, one
 * record for each task. If the disk refuses to reserve the room, transactions with puts are
 * refused. If the disk has no room for the batch, the batch keeps only transactions that end tasks.
 * The spare file then shrinks to make room for the records of these transactions. Returns the
 * refused transactions, and the error in `*ret_refusal`.
 */
static struct transaction *writer_write(struct timerhub_journal *journal, struct write_batch *batch,
                                        uint64_t ends_bytes, int *ret_result, int *ret_refusal,
                                        struct log_position *ret_position)
{
	struct log *log = &journal->log;
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

/*
 * Count a finished batch, set the timer, and mark the batch finished. The caller holds the
 * journal's lock.
 */
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
	eventcount_set(writer_eventcount(journal, batch->number), batch->number << TICKET_SHIFT);
}

/*
 * Write the open batch, if it must be written, and apply the outcome to the tasks. After
 * writer_commit(), writer_wake() must wake the callers of the batch.
 */
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
	/*
	 * Copy the next id for the header of a segment that the leader may begin. All tasks with
	 * later ids will have their records behind that header.
	 */
	journal->log.next_id = journal->next_id;
	lock_give(&journal->lock);
	if (!batch)
		return turn;
	turn = (struct turn){ batch->number, batch->used, true, batch->waiting > 1 };
	begin_ns = journal->timer->ops->monotonic_ns(journal->timer);
	refused = writer_write(journal, batch, ends_bytes, &result, &refusal, &position);
	if (result == 0)
		journal->compactor.blocked = false;
	lock_take(&journal->lock);
	transaction_end(journal, batch->first, result, &position);
	transaction_end(journal, refused, refusal, &position);
	journal->stats.disk_full += refused || log_is_full(result);
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
		eventcount_wake(writer_eventcount(journal, turn->number), WAKE_FEW);
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

/*
 * Stop being the leader. Returns the eventcount on which the next leader sleeps, or NULL if no
 * thread must be woken.
 */
static struct eventcount *writer_hand_over(struct timerhub_journal *journal)
{
	const struct write_batch *batch = state_open_batch(journal);
	struct eventcount *eventcount = writer_eventcount(journal, batch->number);

	journal->writing = false;
	if (batch->waiting > 0) {
		eventcount_set(eventcount, eventcount_number(eventcount) | TICKET_OFFER);
		return eventcount;
	}
	if (journal->compacts || writer_must_write(journal))
		return writer_kick(journal) ? &journal->work : NULL;
	return batch->used > 0 && writer_remind(journal) ? &journal->work : NULL;
}

static void writer_leave(struct timerhub_journal *journal, bool compacts)
{
	struct eventcount *next;

	lock_take(&journal->lock);
	journal->compacts = compacts;
	writer_publish(journal);
	next = writer_hand_over(journal);
	lock_give(&journal->lock);
	if (next)
		eventcount_wake(next, 1);
}

/*
 * Write one batch as the leader, compact if compaction is due, and stop leading. If only one caller
 * waits for the batch, the caller leaves the compaction to the keeper. If the files are so large
 * that changes wait for compaction (compactor.h), the leader always compacts.
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
	sigset_t all, before;
	int cancel;

	/*
	 * Block all signals, so that no handler delays the threads that wait for the leader.
	 * Disable cancellation, which could end the leader in a system call on the disk.
	 */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	writer_lead_once(journal, keeper);
	(void)pthread_setcancelstate(cancel, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- making a request ---- */

/*
 * Wait until the batch `number` is finished. The caller holds the journal's lock. writer_make_way()
 * releases the lock before the wait, and takes the lock again after the wait.
 */
static void writer_make_way(struct timerhub_journal *journal, uint32_t number)
{
	bool leads = writer_may_lead(journal);

	/*
	 * Set `flush`, so that the batch is written even if it has only records that no caller
	 * waits for.
	 */
	journal->flush = true;
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
	if (result == 0) {
		*ret_number = state_open_batch(journal)->number;
		transaction_begin(journal, transaction);
		leads = may_wait && writer_may_lead(journal);
		wake = !may_wait && writer_kick(journal);
	}
	lock_give(&journal->lock);
	if (wake)
		eventcount_wake(&journal->work, 1);
	if (leads)
		writer_lead(journal, false);
	return result > 0 ? -EAGAIN : result;
}
