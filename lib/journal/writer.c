/* SPDX-License-Identifier: MIT */
/*
 * See writer.h. A caller that waits for its change leads: the leader takes the batch to the disk
 * and applies it to the tasks. Other callers gather in that time, and one of them leads next. A
 * lone caller pays a write and a sync, and waits for no other thread. The keeper (keeper.c) leads
 * when no caller waits for the work.
 *
 * One thread leads at a time (`writing`), and writes one batch. The leader leaves with the lock
 * held. If callers wait, the leader offers them the lead by their batch's ticket. If there is other
 * work, the leader calls the keeper. So no batch is left without a thread to write it.
 *
 * The leader wakes the next leader first, because the disk waits for that thread. Then the leader
 * wakes two of its batch's callers, and each of them wakes two more (writer_await).
 */
#define _GNU_SOURCE
#include "journal/writer.h"

#include <errno.h>
#include <signal.h>

#include "journal/delivery.h"
#include "journal/transaction.h"

#define WAKE_FEW 2
#define TAKES_WAIT_NS (UINT64_C(10) * 1000000)

/* A batch's ticket says which one is finished, and in this bit that one of its callers may lead. */
#define TICKET_OFFER 1u
#define TICKET_SHIFT 1

/* ---- callers ---- */

static struct ticket *writer_ticket(struct timerhub_journal *journal, uint32_t number)
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

/* The batch's callers are offered the lead: take it, unless another thread has. */
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
	struct ticket *ticket = writer_ticket(journal, number);
	uint32_t value = ticket_number(ticket);
	bool waited = false;

	if (!journal->threaded)
		(void)writer_pass(journal);
	while (journal->threaded && !writer_has_finished(value, number)) {
		if ((value & TICKET_OFFER) == 0 || !writer_accept(journal)) {
			ticket_wait(ticket, value, UINT64_MAX);
			waited = true;
		}
		value = ticket_number(ticket);
	}
	if (waited)
		ticket_wake(ticket, WAKE_FEW);
}

/* ---- the keeper's work ---- */

bool writer_kick(struct timerhub_journal *journal)
{
	if (journal->writing || journal->called)
		return false;
	journal->called = true;
	ticket_set(&journal->work, ticket_number(&journal->work) + 1);
	return true;
}

bool writer_remind(struct timerhub_journal *journal)
{
	if (journal->writing || journal->look_ns != UINT64_MAX)
		return false;
	journal->look_ns = journal->alarm->ops->monotonic_ns(journal->alarm) + TAKES_WAIT_NS;
	return writer_kick(journal);
}

/* ---- a batch ---- */

/* Only where there is something to gain: as long as there is not, nothing is held up. */
static enum timerhub_journal_held_up writer_held_up(const struct timerhub_journal *journal)
{
	if (journal->cleaner.blocked)
		return TIMERHUB_JOURNAL_BY_DISK;
	if (journal->cleaner.wanted && journal->cleaner.pauses > 0)
		return TIMERHUB_JOURNAL_BY_BACKUP;
	return TIMERHUB_JOURNAL_NOT_HELD_UP;
}

/* What others may read of the log. The lock is held. */
static void writer_publish(struct timerhub_journal *journal)
{
	journal->failed = journal->log.failed;
	journal->stats.disk_bytes = log_disk_bytes(&journal->log);
	journal->stats.segments = journal->log.count;
	journal->stats.syncs = journal->log.syncs;
	journal->stats.copied_bytes = journal->cleaner.copied_bytes;
	journal->stats.segments_dropped = journal->cleaner.dropped;
	journal->stats.healed = journal->cleaner.healed;
	journal->stats.held_up = writer_held_up(journal);
}

bool writer_must_write(struct timerhub_journal *journal)
{
	const struct batch *batch = state_gathering(journal);
	bool hurry = journal->hurry || journal->stopping || !journal->threaded;

	return batch->first || (batch->used > 0 && hurry);
}

/*
 * Returns the batch to write out, while callers gather in the other one; NULL: nothing to do.
 * `*ret_ends_bytes`: what it takes on disk to end every task.
 */
static struct batch *writer_take_batch(struct timerhub_journal *journal, uint64_t *ret_ends_bytes)
{
	struct batch *full = state_gathering(journal);
	uint32_t next = full->number + 1;

	*ret_ends_bytes = journal->tasks.count * (uint64_t)RECORD_HEADER_BYTES;
	if (!writer_must_write(journal))
		return NULL;
	/*
	 * The next batch's ticket was an earlier one's. All of those must have left before a caller
	 * waits for the new number, or the two would swallow each other's wake-ups.
	 */
	ticket_wake(writer_ticket(journal, next), UINT32_MAX);
	journal->gathering ^= 1;
	journal->hurry = false;
	batch_begin(state_gathering(journal), next);
	return full;
}

/*
 * Write a batch. What is put must leave room for its end; if the disk has none, puts are refused,
 * and if it has not even room for the rest, all but the ends of tasks, for which there is the
 * spare. Returns the requests that were refused so, and `*ret_refusal` why.
 */
static struct request *writer_write(struct timerhub_journal *journal, struct batch *batch,
                                    uint64_t ends_bytes, int *ret_result, int *ret_refusal,
                                    struct log_place *ret_place)
{
	struct log *log = &journal->log;
	unsigned how = batch->first ? LOG_SYNC : 0;
	int reserved = log->failed < 0 ? 0 : log_reserve(log, ends_bytes);
	struct request *out = NULL, **end = &out;

	*ret_refusal = reserved;
	*ret_result = 0;
	if (reserved < 0)
		out = batch_take_out(batch, false);
	if (batch->used > 0)
		*ret_result = log_append(log, batch->bytes, batch->used, how, ret_place);
	if (!log_is_full(*ret_result))
		return out;
	*ret_refusal = *ret_result;
	while (*end)
		end = &(*end)->next;
	*end = batch_take_out(batch, true);
	*ret_result = 0;
	if (batch->used > 0)
		*ret_result =
			log_append(log, batch->bytes, batch->used, how | LOG_SPARE, ret_place);
	return out;
}

/* What a leader has written. */
struct turn {
	uint32_t number; /* of the batch */
	size_t bytes;
	bool worked; /* there was one */
	bool shared; /* more than one caller waits for it */
};

/* The outcome of a batch is applied, and its callers find it finished. The lock is held. */
static void writer_end_batch(struct timerhub_journal *journal, const struct batch *batch,
                             int result, uint64_t begin_ns)
{
	uint64_t now_ns = journal->alarm->ops->monotonic_ns(journal->alarm);

	if (result == 0 && batch->used > 0) {
		journal->stats.batches++;
		journal->stats.records += batch->records;
	}
	if (result == 0 && batch->first)
		journal->stats.sync_ns[state_bucket(now_ns - begin_ns)]++;
	state_set_alarm(journal);
	writer_publish(journal);
	ticket_set(writer_ticket(journal, batch->number), batch->number << TICKET_SHIFT);
}

/* Write what has gathered, if it is time to. Its callers are not woken: writer_wake(). */
static struct turn writer_commit(struct timerhub_journal *journal)
{
	struct turn turn = { .bytes = 0 };
	struct log_place place = { 0, 0 };
	struct request *refused;
	struct batch *batch;
	uint64_t ends_bytes, begin_ns;
	int result, refusal;
	bool ring;

	lock_take(&journal->lock);
	delivery_end_leases(journal);
	batch = writer_take_batch(journal, &ends_bytes);
	/* Ids given out later are in records later than a segment that now begins. */
	journal->log.next_id = journal->next_id;
	lock_give(&journal->lock);
	if (!batch)
		return turn;
	turn = (struct turn){ batch->number, batch->used, true, batch->waiting > 1 };
	begin_ns = journal->alarm->ops->monotonic_ns(journal->alarm);
	refused = writer_write(journal, batch, ends_bytes, &result, &refusal, &place);
	if (result == 0)
		journal->cleaner.blocked = false;
	lock_take(&journal->lock);
	request_end(journal, batch->first, result, &place);
	request_end(journal, refused, refusal, &place);
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
		ticket_wake(writer_ticket(journal, turn->number), WAKE_FEW);
}

bool writer_pass(struct timerhub_journal *journal)
{
	struct turn turn = writer_commit(journal);
	bool cleaned = cleaner_work(&journal->cleaner, turn.bytes, true);

	lock_take(&journal->lock);
	writer_publish(journal);
	lock_give(&journal->lock);
	return turn.worked || cleaned;
}

/* ---- leading ---- */

/* The leader leaves. Returns what the thread sleeps on that goes on; NULL: none needs be woken. */
static struct ticket *writer_hand_over(struct timerhub_journal *journal)
{
	const struct batch *batch = state_gathering(journal);
	struct ticket *ticket = writer_ticket(journal, batch->number);

	journal->writing = false;
	if (batch->waiting > 0) {
		ticket_set(ticket, ticket_number(ticket) | TICKET_OFFER);
		return ticket;
	}
	if (journal->cleans || writer_must_write(journal))
		return writer_kick(journal) ? &journal->work : NULL;
	return batch->used > 0 && writer_remind(journal) ? &journal->work : NULL;
}

static void writer_leave(struct timerhub_journal *journal, bool cleans)
{
	struct ticket *next;

	lock_take(&journal->lock);
	journal->cleans = cleans;
	writer_publish(journal);
	next = writer_hand_over(journal);
	lock_give(&journal->lock);
	if (next)
		ticket_wake(next, 1);
}

/* A lone caller leaves compaction to the keeper, unless the disk holds too much. */
static void writer_lead_once(struct timerhub_journal *journal, bool keeper)
{
	struct turn turn = writer_commit(journal);
	bool cleans = cleaner_is_due(&journal->cleaner);

	if (!cleans) {
		writer_leave(journal, false);
		writer_wake(journal, &turn);
		return;
	}
	writer_wake(journal, &turn);
	(void)cleaner_work(&journal->cleaner, turn.bytes, keeper || turn.shared);
	writer_leave(journal, cleaner_is_due(&journal->cleaner));
}

void writer_lead(struct timerhub_journal *journal, bool keeper)
{
	sigset_t all, before;
	int cancel;

	/* No handler keeps the others waiting, and no call to the disk ends the thread. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	writer_lead_once(journal, keeper);
	(void)pthread_setcancelstate(cancel, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- making a request ---- */

/* Wait for a batch. The lock is held, and given away meanwhile. */
static void writer_make_way(struct timerhub_journal *journal, uint32_t number)
{
	bool leads = writer_may_lead(journal);

	/* It may be full of records that no caller asks for. */
	journal->hurry = true;
	lock_give(&journal->lock);
	if (leads)
		writer_lead(journal, false);
	writer_await(journal, number);
	lock_take(&journal->lock);
}

int writer_make(struct timerhub_journal *journal, struct request *request, bool may_wait,
                unsigned *ret_index, uint32_t *ret_number)
{
	uint32_t number = 0;
	bool wake = false, leads = false;
	int result;

	lock_take(&journal->lock);
	for (;;) {
		delivery_end_leases(journal);
		result = request_check(journal, request, &number, ret_index);
		if (result <= 0 || !may_wait)
			break;
		writer_make_way(journal, number);
	}
	if (result == 0) {
		*ret_number = state_gathering(journal)->number;
		request_begin(journal, request);
		leads = may_wait && writer_may_lead(journal);
		wake = !may_wait && writer_kick(journal);
	}
	lock_give(&journal->lock);
	if (wake)
		ticket_wake(&journal->work, 1);
	if (leads)
		writer_lead(journal, false);
	return result > 0 ? -EAGAIN : result;
}
