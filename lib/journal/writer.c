/* SPDX-License-Identifier: MIT */
/*
 * The writer: one thread that brings what callers gather to the disk, a batch at a time, and then
 * applies it to the tasks in memory. Its pass is journal_pass(); the rest is sleeping and waking.
 *
 * While it sleeps a caller that waits for its change writes the batch itself (journal_lead): so a
 * lone caller is spared two hand-overs between threads. What gathers meanwhile is the writer's.
 *
 * It sleeps no longer than the first lease lasts, and gives back what leases are over for. Takers
 * do so too, for it may be held up by the disk. Records of deliveries, for which no caller waits,
 * wait for the next change, or for TAKES_WAIT_NS.
 *
 * Waking: the writer wakes two of a batch's callers, and each of them two more (journal_await), so
 * that with many callers the writer is back at the disk at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "journal.h"

#define WAKE_FEW 2
#define TAKES_WAIT_NS (UINT64_C(10) * 1000000)
#define THREAD_NAME "timerhub-writer"

/* ---- callers ---- */

struct batch *journal_gathering(struct timerhub_journal *journal)
{
	return &journal->batches[journal->gathering];
}

static struct ticket *writer_ticket(struct timerhub_journal *journal, uint32_t number)
{
	return &journal->finished[number % JOURNAL_FINISHED];
}

static bool writer_has_finished(uint32_t last, uint32_t number)
{
	return (int32_t)(last - number) >= 0;
}

void journal_await(struct timerhub_journal *journal, uint32_t number)
{
	struct ticket *ticket = writer_ticket(journal, number);
	uint32_t last = ticket_number(ticket);
	bool waited = false;

	if (!journal->threaded)
		(void)journal_pass(journal);
	while (journal->threaded && !writer_has_finished(last, number)) {
		ticket_wait(ticket, last, UINT64_MAX);
		waited = true;
		last = ticket_number(ticket);
	}
	if (waited)
		ticket_wake(ticket, WAKE_FEW);
}

bool journal_kick(struct timerhub_journal *journal)
{
	if (journal->writing != WRITING_NONE)
		return false;
	journal->writing = WRITING_WRITER;
	ticket_set(&journal->work, ticket_number(&journal->work) + 1);
	return true;
}

bool journal_remind(struct timerhub_journal *journal)
{
	if (journal->writing != WRITING_NONE || journal->look_ns != UINT64_MAX)
		return false;
	journal->look_ns = journal->alarm->ops->monotonic_ns(journal->alarm) + TAKES_WAIT_NS;
	ticket_set(&journal->work, ticket_number(&journal->work) + 1);
	return true;
}

bool journal_may_lead(struct timerhub_journal *journal)
{
	if (!journal->threaded || journal->writing != WRITING_NONE)
		return false;
	journal->writing = WRITING_CALLER;
	return true;
}

/* Returns when the first lease ends, on the wall clock as it is now; UINT64_MAX: none does. */
static uint64_t writer_lease_end_ns(struct timerhub_journal *journal)
{
	const struct alarm_ops *ops = journal->alarm->ops;
	uint64_t end_ns = agenda_first_ns(&journal->leases), now_ns;

	if (end_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = ops->monotonic_ns(journal->alarm);
	end_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	now_ns = ops->wall_ns(journal->alarm);
	return end_ns < UINT64_MAX - now_ns ? now_ns + end_ns : UINT64_MAX;
}

/*
 * A thread in take ends leases by itself. For a caller that polls the alarm rings then: early, if
 * the wall clock is set forward meanwhile, and its take finds nothing yet.
 */
void journal_set_alarm(struct timerhub_journal *journal)
{
	bool blocks = !journal->shut && journal->stopped_ns == UINT64_MAX;
	uint64_t due_ns = blocks ? agenda_first_ns(&journal->agenda) : 0;

	if (!journal->led && !journal->polled)
		return;
	if (journal->polled) {
		uint64_t end_ns = writer_lease_end_ns(journal);

		due_ns = due_ns < end_ns ? due_ns : end_ns;
	}
	journal->alarm->ops->set(journal->alarm, due_ns);
}

/* ---- applying a batch; the lock is held ---- */

static void writer_put_back(struct timerhub_journal *journal, const struct change *change)
{
	struct task *task = change->task;

	task->agenda_index = TASK_NOWHERE;
	if (task->state == TASK_PENDING)
		agenda_insert(&journal->agenda, task, task->due_ns);
	else if (task->state == TASK_TAKEN && journal->lease_ns > 0)
		agenda_insert(&journal->leases, task, change->lease_end_ns);
}

static void writer_apply_put(struct timerhub_journal *journal, struct change *change, int result,
                             const struct log_place *place)
{
	struct task *task = change->task;

	journal->arriving--;
	if (result < 0) {
		change->task = NULL;
		tasks_remove(&journal->tasks, task);
		return;
	}
	task->segment = (uint32_t)place->segment;
	task->offset8 = (uint32_t)((place->offset + change->at) / RECORD_ALIGN_BYTES);
	task->state = TASK_PENDING;
	agenda_insert(&journal->agenda, task, task->due_ns);
	journal->stats.put++;
}

/* The state that the task had is left; the delivery, if it was answered for, is over. */
static void writer_leave_state(struct timerhub_journal *journal, const struct change *change)
{
	struct task *task = change->task;

	if (task->state == TASK_TAKEN)
		journal->stats.taken--;
	if (task->state == TASK_PARKED)
		journal->parked--;
	task->agenda_index = TASK_NOWHERE;
	if (change->delivery != 0)
		hands_remove(&journal->hands, &journal->tasks,
		             hands_find(&journal->hands, change->delivery));
}

static void writer_apply_due(struct timerhub_journal *journal, const struct change *change)
{
	struct task *task = change->task;

	task->due_ns = change->due_ns;
	if (change->type == RECORD_RENEW)
		task->attempts = 0;
	if (change->type == RECORD_PARK) {
		task->reason = change->reason;
		task->state = TASK_PARKED;
		journal->parked++;
		return;
	}
	task->state = TASK_PENDING;
	agenda_insert(&journal->agenda, task, task->due_ns);
}

static void writer_count(struct timerhub_journal *journal, const struct change *change)
{
	switch (change->type) {
	case RECORD_CANCEL:
		journal->stats.cancelled++;
		break;
	case RECORD_DONE:
		journal->stats.done++;
		break;
	case RECORD_MOVE:
		journal->stats.moved++;
		break;
	case RECORD_RENEW: /* a period is done, or a parked task is moved */
		journal->stats.done += change->delivery != 0;
		journal->stats.moved += change->delivery == 0;
		break;
	default:
		journal->stats.retried++;
		break;
	}
}

static void writer_apply(struct timerhub_journal *journal, struct change *change, int result,
                         const struct log_place *place)
{
	change->task->changing = 0;
	if (change->type == RECORD_PUT) {
		writer_apply_put(journal, change, result, place);
		return;
	}
	if (result < 0) {
		writer_put_back(journal, change);
		return;
	}
	writer_count(journal, change);
	writer_leave_state(journal, change);
	if (change->type == RECORD_DONE || change->type == RECORD_CANCEL)
		tasks_remove(&journal->tasks, change->task);
	else
		writer_apply_due(journal, change);
}

static void writer_apply_all(struct timerhub_journal *journal, struct request *first, int result,
                             const struct log_place *place)
{
	struct request *next;

	for (struct request *request = first; request; request = next) {
		next = request->next;
		request->result = result;
		for (unsigned i = 0; i < request->count; i++)
			writer_apply(journal, &request->changes[i], result, place);
		if (request->async)
			completions_put(&journal->completions, request);
	}
}

/* ---- the pass ---- */

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

/* Does a caller wait for what has gathered, or is it time to write it? The lock is held. */
static bool writer_must_write(struct timerhub_journal *journal)
{
	const struct batch *batch = journal_gathering(journal);
	bool hurry = journal->hurry || journal->stopping || !journal->threaded;

	return batch->first || (batch->used > 0 && hurry);
}

/*
 * Returns the batch to write out, while callers gather in the other one; NULL: nothing to do.
 * `*ret_ends_bytes`: what it takes on disk to end every task.
 */
static struct batch *writer_take_batch(struct timerhub_journal *journal, uint64_t *ret_ends_bytes)
{
	struct batch *full = journal_gathering(journal);
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
	batch_begin(journal_gathering(journal), next);
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

static bool writer_commit(struct timerhub_journal *journal, size_t *ret_bytes)
{
	struct log_place place = { 0, 0 };
	struct request *refused;
	struct batch *batch;
	uint64_t ends_bytes;
	uint32_t number;
	uint64_t begin_ns;
	int result, refusal;
	bool ring;

	lock_take(&journal->lock);
	batch = writer_take_batch(journal, &ends_bytes);
	/* Ids given out later are in records later than a segment that now begins. */
	journal->log.next_id = journal->next_id;
	lock_give(&journal->lock);
	if (!batch)
		return false;
	number = batch->number;
	*ret_bytes = batch->used;
	begin_ns = journal->alarm->ops->monotonic_ns(journal->alarm);
	refused = writer_write(journal, batch, ends_bytes, &result, &refusal, &place);
	lock_take(&journal->lock);
	writer_apply_all(journal, batch->first, result, &place);
	writer_apply_all(journal, refused, refusal, &place);
	if (result == 0 && batch->used > 0) {
		journal->stats.batches++;
		journal->stats.records += batch->records;
	}
	if (result == 0 && batch->first)
		journal->stats.sync_ns[journal_bucket(
			journal->alarm->ops->monotonic_ns(journal->alarm) - begin_ns)]++;
	journal->stats.disk_full += refused || log_is_full(result);
	journal_set_alarm(journal);
	writer_publish(journal);
	ring = completions_must_ring(&journal->completions);
	lock_give(&journal->lock);
	if (ring)
		completions_ring(&journal->completions);
	ticket_set(writer_ticket(journal, number), number);
	ticket_wake(writer_ticket(journal, number), WAKE_FEW);
	if (result == 0)
		journal->cleaner.blocked = false;
	return true;
}

bool journal_pass(struct timerhub_journal *journal)
{
	size_t bytes = 0;
	bool worked, cleaned;

	lock_take(&journal->lock);
	journal_end_leases(journal);
	lock_give(&journal->lock);
	worked = writer_commit(journal, &bytes);
	cleaned = cleaner_work(&journal->cleaner, bytes);
	if (cleaned || journal->cleaner.wanted) {
		lock_take(&journal->lock);
		writer_publish(journal);
		lock_give(&journal->lock);
	}
	return worked || cleaned;
}

/* ---- a caller that leads ---- */

/* The caller has written its batch. Must the writer be woken? The lock is held. */
static bool writer_hand_over(struct timerhub_journal *journal, bool cleans)
{
	journal->stats.held_up = writer_held_up(journal);
	journal->writing = WRITING_NONE;
	if (cleans || writer_must_write(journal))
		return journal_kick(journal);
	return journal_gathering(journal)->used > 0 && journal_remind(journal);
}

void journal_lead(struct timerhub_journal *journal)
{
	sigset_t all, before;
	bool cleans, wake;
	size_t bytes = 0;
	int cancel;

	/* No handler keeps the others waiting, and no call to the disk ends the thread. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	(void)writer_commit(journal, &bytes);
	cleans = cleaner_is_due(&journal->cleaner);
	lock_take(&journal->lock);
	wake = writer_hand_over(journal, cleans);
	lock_give(&journal->lock);
	if (wake)
		ticket_wake(&journal->work, 1);
	(void)pthread_setcancelstate(cancel, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the thread ---- */

/* Returns how long the writer may sleep; UINT64_MAX: until it is woken. The lock is held. */
static uint64_t writer_sleep_ns(struct timerhub_journal *journal)
{
	uint64_t end_ns = agenda_first_ns(&journal->leases), now_ns;

	if (journal->look_ns < end_ns)
		end_ns = journal->look_ns;
	if (end_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = journal->alarm->ops->monotonic_ns(journal->alarm);
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

/* Sleep until there may be something to do. The lock is held, and given away meanwhile. */
static void writer_sleep(struct timerhub_journal *journal)
{
	uint64_t timeout_ns = writer_sleep_ns(journal);
	uint32_t number = ticket_number(&journal->work);

	lock_give(&journal->lock);
	if (timeout_ns > 0)
		ticket_wait(&journal->work, number, timeout_ns);
	lock_take(&journal->lock);
	journal_end_leases(journal);
	if (journal->alarm->ops->monotonic_ns(journal->alarm) < journal->look_ns)
		return;
	journal->look_ns = UINT64_MAX;
	journal->hurry = journal_gathering(journal)->used > 0;
}

/* Sleep until there is something to write. False: there is nothing, and the journal is closing. */
static bool writer_rest(struct timerhub_journal *journal)
{
	bool writes;

	lock_take(&journal->lock);
	if (!writer_must_write(journal)) {
		journal->writing = WRITING_NONE;
		if (journal_gathering(journal)->used > 0)
			(void)journal_remind(journal);
	}
	while (journal->writing != WRITING_WRITER && !journal->stopping) {
		writer_sleep(journal);
		if (journal->writing == WRITING_NONE && writer_must_write(journal))
			journal->writing = WRITING_WRITER;
	}
	writes = journal->writing == WRITING_WRITER;
	lock_give(&journal->lock);
	return writes;
}

static void *writer_main(void *argument)
{
	struct timerhub_journal *journal = argument;

	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	do
		while (journal_pass(journal)) {
		}
	while (writer_rest(journal));
	return NULL;
}

int journal_start_writer(struct timerhub_journal *journal)
{
	sigset_t all, before;
	int result;

	journal->writing = WRITING_WRITER;
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
