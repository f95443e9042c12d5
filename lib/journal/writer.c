/* SPDX-License-Identifier: MIT */
/*
 * The writer: one thread that brings what callers gather to the disk, a batch at a time, and then
 * applies it to the tasks in memory. Its pass is journal_pass(); the rest is sleeping and waking.
 *
 * It also gives back what leases are over for: it sleeps no longer than the first lease lasts.
 *
 * Waking: the writer wakes two of a batch's callers, and each of them two more (journal_await), so
 * that with many callers the writer is back at the disk at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "journal.h"

#define WAKE_FEW 2
#define THREAD_NAME "timerhub-writer"

/* ---- callers ---- */

static struct batch *gathering(struct timerhub_journal *journal)
{
	return &journal->batches[journal->gathering];
}

static struct ticket *finished_ticket(struct timerhub_journal *journal, uint32_t number)
{
	return &journal->finished[number % JOURNAL_FINISHED];
}

static bool is_finished(uint32_t last, uint32_t number)
{
	return (int32_t)(last - number) >= 0;
}

void journal_await(struct timerhub_journal *journal, uint32_t number)
{
	struct ticket *ticket = finished_ticket(journal, number);
	uint32_t last = ticket_number(ticket);
	bool waited = false;

	if (!journal->threaded)
		(void)journal_pass(journal);
	while (journal->threaded && !is_finished(last, number)) {
		ticket_wait(ticket, last, UINT64_MAX);
		waited = true;
		last = ticket_number(ticket);
	}
	if (waited)
		ticket_wake(ticket, WAKE_FEW);
}

bool journal_kick(struct timerhub_journal *journal)
{
	if (!journal->idle)
		return false;
	journal->idle = false;
	ticket_set(&journal->work, ticket_number(&journal->work) + 1);
	return true;
}

/* The lock is given away while there is no room. */
static void await_room(struct timerhub_journal *journal, size_t bytes)
{
	while (gathering(journal)->used + bytes > journal->batch_bytes) {
		uint32_t number = gathering(journal)->number;

		lock_give(&journal->lock);
		journal_await(journal, number);
		lock_take(&journal->lock);
	}
}

uint32_t journal_gather(struct timerhub_journal *journal, struct request *request,
                        const struct record *record)
{
	size_t bytes = record_bytes(record->data_len);
	struct batch *batch;

	if (request)
		await_room(journal, bytes);
	batch = gathering(journal);
	if (batch->used + bytes > journal->batch_bytes)
		return batch->number;
	record_encode(batch->bytes + batch->used, record);
	if (request) {
		request->at = batch->used;
		request->next = NULL;
		if (batch->last)
			batch->last->next = request;
		else
			batch->first = request;
		batch->last = request;
	}
	batch->used += bytes;
	batch->records++;
	return batch->number;
}

void journal_set_alarm(struct timerhub_journal *journal)
{
	journal->alarm->ops->set(journal->alarm,
	                         journal->closing ? 0 : agenda_first_ns(&journal->agenda));
}

/* ---- applying a batch; the lock is held ---- */

static void put_back(struct timerhub_journal *journal, const struct request *request)
{
	struct task *task = request->task;

	if (task->state == TASK_PENDING)
		agenda_insert(&journal->agenda, task, task->due_ns);
	else if (journal->lease_ns > 0)
		agenda_insert(&journal->leases, task, request->lease_end_ns);
}

static void apply_put(struct timerhub_journal *journal, const struct request *request,
                      const struct log_place *place)
{
	struct task *task = request->task;

	journal->reserved--;
	if (request->result < 0)
		return; /* the caller frees it */
	task->segment = (uint32_t)place->segment;
	task->offset8 = (uint32_t)((place->offset + request->at) / RECORD_ALIGN_BYTES);
	tasks_insert(&journal->tasks, task);
	agenda_insert(&journal->agenda, task, task->due_ns);
	journal->stats.put++;
}

static void apply_end(struct timerhub_journal *journal, const struct request *request)
{
	if (request->task->state == TASK_TAKEN)
		journal->stats.taken--;
	if (request->type == RECORD_DONE)
		journal->stats.done++;
	else
		journal->stats.cancelled++;
	tasks_remove(&journal->tasks, request->task);
}

static void apply_due(struct timerhub_journal *journal, const struct request *request)
{
	struct task *task = request->task;

	if (request->type == RECORD_RETRY) {
		journal->stats.taken--;
		journal->stats.retried++;
	} else {
		journal->stats.moved++;
	}
	task->state = TASK_PENDING;
	task->due_ns = request->due_ns;
	agenda_insert(&journal->agenda, task, task->due_ns);
}

static void apply(struct timerhub_journal *journal, const struct request *request,
                  const struct log_place *place)
{
	if (request->type == RECORD_PUT) {
		apply_put(journal, request, place);
		return;
	}
	request->task->changing = 0;
	if (request->result < 0)
		put_back(journal, request);
	else if (request->type == RECORD_MOVE || request->type == RECORD_RETRY)
		apply_due(journal, request);
	else
		apply_end(journal, request);
}

static void apply_all(struct timerhub_journal *journal, struct batch *batch, int result,
                      const struct log_place *place)
{
	for (struct request *request = batch->first; request; request = request->next) {
		request->result = result;
		apply(journal, request, place);
	}
	if (result == 0) {
		journal->stats.batches++;
		journal->stats.records += batch->records;
	}
	journal_set_alarm(journal);
}

/* ---- the pass ---- */

/* What others may read of the log. The lock is held. */
static void publish(struct timerhub_journal *journal)
{
	journal->failed = journal->log.failed;
	journal->stats.disk_bytes = journal->log.bytes;
	journal->stats.segments = journal->log.count;
	journal->stats.syncs = journal->log.syncs;
}

/* The batch to write out, and callers gather in the other one from now on; NULL: nothing to do. */
static struct batch *take_batch(struct timerhub_journal *journal)
{
	struct batch *full = gathering(journal), *empty;
	uint32_t next = full->number + 1;

	if (full->used == 0)
		return NULL;
	/*
	 * The next batch's ticket was an earlier one's. All of those must have left before anybody
	 * waits for the new number, or the two would swallow each other's wake-ups.
	 */
	ticket_wake(finished_ticket(journal, next), UINT32_MAX);
	journal->gathering ^= 1;
	empty = gathering(journal);
	*empty = (struct batch){ .bytes = empty->bytes, .number = next };
	return full;
}

static bool commit(struct timerhub_journal *journal, size_t *ret_bytes)
{
	struct log_place place = { 0, 0 };
	struct batch *batch;
	uint32_t number;
	int result;

	lock_take(&journal->lock);
	batch = take_batch(journal);
	/* Ids given out later are in records later than a segment that now begins. */
	journal->log.next_id = journal->next_id;
	lock_give(&journal->lock);
	if (!batch)
		return false;
	number = batch->number;
	*ret_bytes = batch->used;
	result = log_append(&journal->log, batch->bytes, batch->used, batch->first != NULL, &place);
	lock_take(&journal->lock);
	apply_all(journal, batch, result, &place);
	publish(journal);
	lock_give(&journal->lock);
	ticket_set(finished_ticket(journal, number), number);
	ticket_wake(finished_ticket(journal, number), WAKE_FEW);
	if (result == 0)
		journal->cleaner.blocked = false;
	return true;
}

/* What was taken, and not acknowledged in time, is due again. */
static void end_leases(struct timerhub_journal *journal)
{
	uint64_t now_ns;

	lock_take(&journal->lock);
	now_ns = journal->leases.count > 0 ? journal->alarm->ops->monotonic_ns(journal->alarm) : 0;
	while (journal->leases.count > 0 && agenda_first_ns(&journal->leases) <= now_ns) {
		struct task *task = agenda_first(&journal->leases);

		(void)agenda_remove(&journal->leases, task);
		task->state = TASK_PENDING;
		agenda_insert(&journal->agenda, task, task->due_ns);
		journal->stats.taken--;
		journal->stats.leases_over++;
		journal_set_alarm(journal);
	}
	lock_give(&journal->lock);
}

bool journal_pass(struct timerhub_journal *journal)
{
	size_t bytes = 0;
	bool worked;

	end_leases(journal);
	worked = commit(journal, &bytes);
	if (cleaner_work(journal, bytes)) {
		worked = true;
		lock_take(&journal->lock);
		publish(journal);
		lock_give(&journal->lock);
	}
	return worked;
}

/* ---- the thread ---- */

/* Sleep until there is something to do. False: there is nothing, and the journal is closing. */
static bool rest(struct timerhub_journal *journal)
{
	uint64_t now_ns, first_ns, timeout_ns;
	uint32_t number;
	bool stop;

	lock_take(&journal->lock);
	if (gathering(journal)->used > 0) {
		lock_give(&journal->lock);
		return true;
	}
	first_ns = agenda_first_ns(&journal->leases);
	stop = journal->stopping;
	journal->idle = !stop;
	number = ticket_number(&journal->work);
	lock_give(&journal->lock);
	if (stop)
		return false;
	now_ns = journal->alarm->ops->monotonic_ns(journal->alarm);
	timeout_ns = first_ns > now_ns ? first_ns - now_ns : 0;
	if (first_ns == UINT64_MAX)
		timeout_ns = UINT64_MAX;
	if (timeout_ns > 0)
		ticket_wait(&journal->work, number, timeout_ns);
	lock_take(&journal->lock);
	journal->idle = false;
	lock_give(&journal->lock);
	return true;
}

static void *writer_main(void *argument)
{
	struct timerhub_journal *journal = argument;

	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	do
		while (journal_pass(journal)) {
		}
	while (rest(journal));
	return NULL;
}

int journal_start_writer(struct timerhub_journal *journal)
{
	sigset_t all, before;
	int result;

	/* The thread inherits a mask in which no handler of the program's can run on it. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&journal->thread, NULL, writer_main, journal);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -result;
}

void journal_stop_writer(struct timerhub_journal *journal)
{
	lock_take(&journal->lock);
	journal->stopping = true;
	(void)journal_kick(journal);
	lock_give(&journal->lock);
	ticket_wake(&journal->work, 1);
	(void)pthread_join(journal->thread, NULL);
}
