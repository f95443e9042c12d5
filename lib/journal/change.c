/* SPDX-License-Identifier: MIT */
/*
 * put, cancel, move, done, retry. Any thread; each waits for the disk. While a change of a task is
 * on its way, the task is in no agenda, so it is not delivered, and other changes of it wait to see
 * how it ends. tests/journal holds them to a model, with the disk failing and crashing everywhere.
 */
#include <errno.h>
#include <stdlib.h>

#include "crc32c.h"
#include "journal.h"

#define DUE_MAX_NS (UINT64_C(1) << 63) /* times from here on cannot be kept, but for "never" */

static int find_due(struct timerhub_journal *journal, uint64_t when_ns, uint32_t flags,
                    uint64_t *ret_due_ns)
{
	uint64_t due_ns = when_ns;

	if ((flags & ~TIMERHUB_ABSOLUTE) != 0)
		return -EINVAL;
	if (when_ns != TIMERHUB_NEVER) {
		if (when_ns >= DUE_MAX_NS)
			return -ERANGE;
		if ((flags & TIMERHUB_ABSOLUTE) == 0)
			due_ns += journal->alarm->ops->wall_ns(journal->alarm);
		if (due_ns >= DUE_MAX_NS)
			return -ERANGE;
	}
	*ret_due_ns = due_ns;
	return 0;
}

/* The lock is held, and is given away: gather, wait, and tell how it went. */
static int submit(struct timerhub_journal *journal, struct request *request,
                  const struct record *record)
{
	uint32_t number = journal_gather(journal, request, record);
	bool wake = journal_kick(journal);

	if (request->task->changing != 0)
		request->task->agenda_index = number;
	lock_give(&journal->lock);
	if (wake)
		ticket_wake(&journal->work, 1);
	journal_await(journal, number);
	return request->result;
}

/* ---- put ---- */

/* Once it is stable the task may be taken, and gone, before we look again: hence `ret_id`. */
static int put_task(struct timerhub_journal *journal, struct task *task, uint32_t data_crc,
                    uint64_t *ret_id)
{
	struct request request = { .type = RECORD_PUT, .task = task };
	struct record record = {
		.type = RECORD_PUT,
		.due_ns = task->due_ns,
		.data = task->data,
		.data_len = task->data_len,
		.data_crc = data_crc,
	};
	int result = 0;

	lock_take(&journal->lock);
	if (journal->failed < 0)
		result = journal->failed;
	else if (journal->tasks.count + journal->reserved >= journal->tasks_max)
		result = -EAGAIN;
	if (result < 0) {
		lock_give(&journal->lock);
		return result;
	}
	journal->reserved++;
	task->id = journal->next_id++;
	record.id = task->id;
	*ret_id = task->id;
	return submit(journal, &request, &record);
}

int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns, uint32_t flags,
                         const void *data, size_t data_len, uint64_t *ret_id)
{
	uint64_t due_ns, id;
	struct task *task;
	int result;

	if (!journal || (!data && data_len > 0))
		return -EINVAL;
	if (!life_goes_on(&journal->life))
		return -EOWNERDEAD;
	result = find_due(journal, when_ns, flags, &due_ns);
	if (result < 0)
		return result;
	if (data_len > journal->data_max)
		return -EMSGSIZE;
	task = task_new(due_ns, data, (uint32_t)data_len);
	if (!task)
		return -ENOMEM;
	/* The checksum before the lock is taken, so that callers compute theirs side by side. */
	result = put_task(journal, task, crc32c(0, data, data_len), &id);
	if (result < 0) {
		free(task);
		return result;
	}
	if (ret_id)
		*ret_id = id;
	return 0;
}

/* ---- changes of a task ---- */

/*
 * The task, when no other change of it is on its way; NULL: there is none. The lock is held; it is
 * given away while waiting.
 */
static struct task *find_settled(struct timerhub_journal *journal, uint64_t id)
{
	struct task *task = tasks_find(&journal->tasks, id);

	while (task && task->changing != 0) {
		uint32_t number = task->agenda_index; /* of the batch, see begin_change() */

		lock_give(&journal->lock);
		journal_await(journal, number);
		lock_take(&journal->lock);
		task = tasks_find(&journal->tasks, id);
	}
	return task;
}

/* Nobody is handed the task, and its lease does not end, until the change is applied. */
static void begin_change(struct timerhub_journal *journal, struct request *request)
{
	struct task *task = request->task;

	if (task->state == TASK_PENDING)
		(void)agenda_remove(&journal->agenda, task);
	else if (journal->lease_ns > 0)
		request->lease_end_ns = agenda_remove(&journal->leases, task);
	task->changing = 1;
	/* In no agenda, it can say instead which batch to wait for. */
	task->agenda_index = journal->batches[journal->gathering].number;
}

/* 0, or why this change cannot be made to the task as it is. */
static int may_change(const struct timerhub_journal *journal, const struct task *task,
                      enum record_type type)
{
	if (!task)
		return -ENOENT;
	if (journal->failed < 0)
		return journal->failed;
	if (task->state == TASK_TAKEN)
		return type == RECORD_CANCEL || type == RECORD_MOVE ? -EBUSY : 0;
	return type == RECORD_RETRY ? -ENOENT : 0;
}

static int change(struct timerhub_journal *journal, uint64_t id, enum record_type type,
                  uint64_t due_ns)
{
	struct request request = { .type = type, .due_ns = due_ns };
	struct record record = { .type = type, .id = id, .due_ns = due_ns };
	int result;

	lock_take(&journal->lock);
	request.task = find_settled(journal, id);
	result = may_change(journal, request.task, type);
	if (result < 0) {
		lock_give(&journal->lock);
		return result;
	}
	begin_change(journal, &request);
	return submit(journal, &request, &record);
}

static int change_due(struct timerhub_journal *journal, uint64_t id, enum record_type type,
                      uint64_t when_ns, uint32_t flags)
{
	uint64_t due_ns;
	int result;

	if (!journal)
		return -EINVAL;
	if (!life_goes_on(&journal->life))
		return -EOWNERDEAD;
	result = find_due(journal, when_ns, flags, &due_ns);
	return result < 0 ? result : change(journal, id, type, due_ns);
}

static int change_end(struct timerhub_journal *journal, uint64_t id, enum record_type type)
{
	if (!journal)
		return -EINVAL;
	return life_goes_on(&journal->life) ? change(journal, id, type, 0) : -EOWNERDEAD;
}

int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id)
{
	return change_end(journal, id, RECORD_CANCEL);
}

int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id, uint64_t when_ns,
                          uint32_t flags)
{
	return change_due(journal, id, RECORD_MOVE, when_ns, flags);
}

int timerhub_journal_done(struct timerhub_journal *journal, uint64_t id)
{
	return change_end(journal, id, RECORD_DONE);
}

int timerhub_journal_retry(struct timerhub_journal *journal, uint64_t id, uint64_t delay_ns)
{
	return change_due(journal, id, RECORD_RETRY, delay_ns, 0);
}
