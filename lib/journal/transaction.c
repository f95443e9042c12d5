/* SPDX-License-Identifier: MIT */
/*
 * While a change of a task is in flight, the task is in no agenda, and other changes of it wait. A
 * transaction also waits for room in the open batch. The lock is held from a transaction_check() of
 * 0 to transaction_begin().
 */
#include "journal/transaction.h"

#include <errno.h>
#include <string.h>

#include "journal/delivery.h"

/* ---- check a transaction; the lock is held ---- */

static int change_check_put(struct backlog *backlog, struct change *change, uint32_t *ret_batch)
{
	const struct task *other;

	if (change->key_len > 0) {
		if (tasks_reserve_keys(&backlog->tasks) < 0)
			return -ENOMEM;
		other = tasks_find_key(&backlog->tasks, change->key, change->key_len);
		if (other && other->changing != 0)
			return delivery_in_flight(other, ret_batch);
		if (other) {
			change->id = other->id;
			return -EEXIST;
		}
	}
	return 0;
}

static int change_check_delivered(struct backlog *backlog, struct change *change,
                                  uint32_t *ret_batch)
{
	struct delivery *held = NULL;
	int result = delivery_find(backlog, change->id, change->delivery, &held, ret_batch);

	if (result == 0)
		change->task = held->task;
	if (result < 0 && held) /* it may change the task no more */
		delivery_table_remove(&backlog->deliveries, &backlog->tasks, held);
	return result;
}

static int change_check_named(struct backlog *backlog, struct change *change, uint32_t *ret_batch)
{
	struct task *task = change->key_len > 0
	                            ? tasks_find_key(&backlog->tasks, change->key, change->key_len)
	                            : tasks_find(&backlog->tasks, change->id);
	int result = delivery_in_flight(task, ret_batch);

	if (result != 0)
		return result;
	change->task = task;
	if (task->state == TASK_TAKEN)
		return change->type == RECORD_RENEW ? -ENOENT : -EBUSY;
	if (change->type == RECORD_RENEW)
		return task->state == TASK_PARKED ? 0 : -ENOENT;
	return change->type == RECORD_MOVE && task->state == TASK_PARKED ? -EBUSY : 0;
}

/* 0: now; 1: after the batch `*ret_batch`; or a refusal. */
static int change_check(struct backlog *backlog, struct change *change, uint32_t *ret_batch)
{
	if (change->type == RECORD_PUT)
		return change_check_put(backlog, change, ret_batch);
	if (change->delivery != 0)
		return change_check_delivered(backlog, change, ret_batch);
	return change_check_named(backlog, change, ret_batch);
}

/* Does a change before `index` end the task `id`? */
static bool transaction_frees_key(const struct transaction *transaction, unsigned index,
                                  uint64_t id)
{
	for (unsigned i = 0; i < index; i++) {
		const struct change *before = &transaction->changes[i];

		if (before->type == RECORD_PUT || before->task->id != id)
			continue;
		if (before->type == RECORD_CANCEL ||
		    (before->type == RECORD_DONE && before->task->interval_ns == 0))
			return true;
	}
	return false;
}

/* Two changes of a task, or two puts of a key, are not allowed. */
static bool transaction_has_twice(const struct transaction *transaction, unsigned index)
{
	const struct change *change = &transaction->changes[index];

	for (unsigned i = 0; i < index; i++) {
		const struct change *before = &transaction->changes[i];

		if (change->type != RECORD_PUT && before->task == change->task)
			return true;
		if (change->type == RECORD_PUT && before->type == RECORD_PUT &&
		    change->key_len > 0 && before->key_len == change->key_len &&
		    memcmp(before->key, change->key, change->key_len) == 0)
			return true;
	}
	return false;
}

static bool change_ends_task(const struct change *change)
{
	return change->type == RECORD_CANCEL ||
	       (change->type == RECORD_DONE && change->task->interval_ns == 0);
}

/*
 * Limits of ids, tasks and data: 0, -EOVERFLOW or -EAGAIN. A task that ends makes room for one that
 * is put, or a full journal could not hand tasks on; its data only if no other delivery holds it.
 */
static int transaction_check_puts(const struct backlog *backlog,
                                  const struct transaction *transaction)
{
	uint64_t bytes = backlog->tasks.data_bytes;
	uint64_t count = backlog->tasks.count;
	unsigned puts = 0;

	for (unsigned i = 0; i < transaction->count; i++) {
		const struct change *change = &transaction->changes[i];
		const struct task *task = change->task;
		uint64_t task_bytes = (uint64_t)task->data_len + task->key_len;

		if (change->type == RECORD_PUT) {
			puts++;
			bytes += task_bytes;
		} else if (change_ends_task(change)) {
			count--;
			bytes -= task->holders <= (change->delivery != 0) ? task_bytes : 0;
		}
	}
	if (puts > RECORD_NUMBER_END - backlog->next_id)
		return -EOVERFLOW;
	if (puts > 0 && (count + puts > backlog->tasks_max || bytes > backlog->data_bytes_max))
		return -EAGAIN;
	return 0;
}

size_t transaction_bytes(const struct transaction *transaction)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < transaction->count; i++) {
		const struct change *change = &transaction->changes[i];

		bytes += change->type == RECORD_PUT ? tasks_record_bytes(change->task)
		                                    : RECORD_HEADER_BYTES;
	}
	return bytes;
}

int transaction_check(struct timerhub_journal *journal, struct transaction *transaction,
                      uint32_t *ret_batch, unsigned *ret_index)
{
	const struct write_batch *batch = state_open_batch(&journal->commit);
	int result;

	for (unsigned i = 0; i < transaction->count; i++) {
		result = change_check(&journal->backlog, &transaction->changes[i], ret_batch);
		*ret_index = i;
		if (result == -EEXIST &&
		    transaction_frees_key(transaction, i, transaction->changes[i].id))
			result = 0;
		if (result == 0 && transaction_has_twice(transaction, i))
			result = -EINVAL;
		if (result != 0)
			return result;
	}
	if (journal->failed < 0)
		return journal->failed;
	result = transaction_check_puts(&journal->backlog, transaction);
	if (result < 0)
		return result;
	if (write_batch_has_room(batch, transaction_bytes(transaction)))
		return 0;
	*ret_batch = batch->number;
	return 1;
}

/* ---- begin a transaction; the lock is held ---- */

static void change_begin_put(struct backlog *backlog, struct task *task)
{
	task->id = backlog->next_id++;
	task->state = TASK_ARRIVING;
	tasks_insert(&backlog->tasks, task);
	backlog->arriving++;
}

/* The next period; or, if the task was moved since the delivery, the time to which it was moved. */
static void change_begin_renewal(struct change *change, const struct delivery *held)
{
	const struct task *task = change->task;
	uint64_t periods = task->due_ns == held->due_ns ? held->periods : 0;

	if (periods > 0 && periods > (RECORD_NUMBER_END - 1 - task->due_ns) / task->interval_ns)
		return; /* the task ends */
	change->type = RECORD_RENEW;
	change->due_ns = task->due_ns + periods * task->interval_ns;
}

/* Of a worker's answer: done of a periodic task changes the due time. */
static void change_begin_delivered(struct backlog *backlog, struct change *change)
{
	const struct task *task = change->task;
	const struct delivery *held = delivery_table_find(&backlog->deliveries, change->delivery);

	if (change->type == RECORD_RETRY && backlog->attempts_max > 0 &&
	    task->attempts >= backlog->attempts_max)
		change->type = RECORD_PARK;
	if (change->type == RECORD_PARK)
		change->due_ns = task->due_ns;
	if (change->type == RECORD_DONE && task->interval_ns > 0)
		change_begin_renewal(change, held);
}

/* Out of the agenda, and marked: until the end it is not delivered, and keeps its lease. */
static void change_begin(struct backlog *backlog, struct change *change, uint32_t batch)
{
	struct task *task = change->task;

	if (change->type == RECORD_PUT)
		change_begin_put(backlog, task);
	else if (task->state == TASK_PENDING)
		(void)agenda_remove(&backlog->agenda, task);
	else if (task->state == TASK_TAKEN && backlog->lease_ns > 0)
		change->lease_end_ns = agenda_remove(&backlog->leases, task);
	if (change->delivery != 0)
		change_begin_delivered(backlog, change);
	task->changing = 1;
	task->batch = batch;
}

static struct record change_record(const struct change *change)
{
	const struct task *task = change->task;
	struct record record = {
		.type = change->type,
		.id = task->id,
		.due_ns = change->due_ns,
	};

	if (change->type == RECORD_DONE || change->type == RECORD_CANCEL)
		record.due_ns = 0;
	if (change->type == RECORD_PARK) {
		record.attempts = task->attempts;
		record.reason = change->reason;
	}
	if (change->type == RECORD_PUT) {
		record.interval_ns = task->interval_ns;
		record.key = task_key(task);
		record.key_len = task->key_len;
		record.data = task_data(task);
		record.data_len = task->data_len;
		record.body_crc = change->body_crc;
	}
	return record;
}

void transaction_begin(struct timerhub_journal *journal, struct transaction *transaction)
{
	struct write_batch *batch = state_open_batch(&journal->commit);

	for (unsigned i = 0; i < transaction->count; i++) {
		struct change *change = &transaction->changes[i];
		struct record record;

		change_begin(&journal->backlog, change, batch->number);
		record = change_record(change);
		record.flags = i + 1 < transaction->count ? RECORD_MORE : 0;
		change->at = write_batch_add(batch, &record);
		/* once stable, another thread may end the task before the caller reads the id */
		change->id = change->task->id;
	}
	write_batch_add_transaction(batch, transaction);
}

/* ---- end a transaction; the lock is held ---- */

static void change_put_back(struct backlog *backlog, const struct change *change)
{
	struct task *task = change->task;

	task->agenda_index = TASK_NOWHERE;
	if (task->state == TASK_PENDING)
		agenda_insert(&backlog->agenda, task, task->due_ns);
	else if (task->state == TASK_TAKEN && backlog->lease_ns > 0)
		agenda_insert(&backlog->leases, task, change->lease_end_ns);
}

static void change_end_put(struct backlog *backlog, struct change *change, int result,
                           const struct log_position *position)
{
	struct task *task = change->task;

	backlog->arriving--;
	if (result < 0) {
		change->task = NULL;
		tasks_remove(&backlog->tasks, task);
		return;
	}
	task->segment = (uint32_t)position->segment;
	task->offset8 = (uint32_t)((position->offset + change->at) / RECORD_ALIGN_BYTES);
	task->state = TASK_PENDING;
	agenda_insert(&backlog->agenda, task, task->due_ns);
}

/* Out of the old state's counters; done, retry and park end the delivery. */
static void change_leave_state(struct backlog *backlog, const struct change *change)
{
	struct task *task = change->task;
	struct delivery *held;

	if (task->state == TASK_TAKEN)
		backlog->taken--;
	if (task->state == TASK_PARKED)
		backlog->parked--;
	task->agenda_index = TASK_NOWHERE;
	held = delivery_table_find(&backlog->deliveries, change->delivery);
	if (held) /* not released while the answer was in flight */
		delivery_table_remove(&backlog->deliveries, &backlog->tasks, held);
}

static void change_end_due(struct backlog *backlog, const struct change *change)
{
	struct task *task = change->task;

	task->due_ns = change->due_ns;
	if (change->type == RECORD_RENEW)
		task->attempts = 0;
	if (change->type == RECORD_PARK) {
		task->reason = change->reason;
		task->state = TASK_PARKED;
		backlog->parked++;
		return;
	}
	task->state = TASK_PENDING;
	agenda_insert(&backlog->agenda, task, task->due_ns);
}

static void change_count(struct timerhub_journal_stats *stats, const struct change *change)
{
	switch (change->type) {
	case RECORD_PUT:
		stats->put++;
		break;
	case RECORD_CANCEL:
		stats->cancelled++;
		break;
	case RECORD_DONE:
		stats->done++;
		break;
	case RECORD_MOVE:
		stats->moved++;
		break;
	/* a period is done, or it was revived */
	case RECORD_RENEW:
		stats->done += change->delivery != 0;
		stats->moved += change->delivery == 0;
		break;
	default:
		stats->retried++;
		break;
	}
}

static void change_end(struct timerhub_journal *journal, struct change *change, int result,
                       const struct log_position *position)
{
	change->task->changing = 0;
	if (result == 0)
		change_count(&journal->stats, change);
	if (change->type == RECORD_PUT) {
		change_end_put(&journal->backlog, change, result, position);
		return;
	}
	if (result < 0) {
		change_put_back(&journal->backlog, change);
		return;
	}
	change_leave_state(&journal->backlog, change);
	if (change->type == RECORD_DONE || change->type == RECORD_CANCEL)
		tasks_remove(&journal->backlog.tasks, change->task);
	else
		change_end_due(&journal->backlog, change);
}

void transaction_end(struct timerhub_journal *journal, struct transaction *first, int result,
                     const struct log_position *position)
{
	struct transaction *next;

	for (struct transaction *transaction = first; transaction; transaction = next) {
		next = transaction->next;
		transaction->result = result;
		for (unsigned i = 0; i < transaction->count; i++)
			change_end(journal, &transaction->changes[i], result, position);
		if (transaction->async)
			completions_put(&journal->completions, transaction);
	}
}
