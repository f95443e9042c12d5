/* SPDX-License-Identifier: MIT */
/* The agenda gets all tasks but parked ones: who took a task before the crash has lost it. */
#include "journal/redo.h"

#include <errno.h>
#include <stdlib.h>

/* In tables that double. 0 or -ENOMEM. */
static int redo_make_room(struct tasks *tasks, struct agenda *agenda)
{
	int result = tasks_reserve(tasks, tasks->count + 1);

	return result == 0 ? agenda_reserve(agenda, tasks->count + 1) : result;
}

static void redo_unfile(struct agenda *agenda, struct task *task)
{
	if (task->state == TASK_PENDING)
		(void)agenda_remove(agenda, task);
}

static void redo_file(struct agenda *agenda, struct task *task, enum task_state state)
{
	task->state = (uint8_t)state;
	if (state == TASK_PENDING)
		agenda_insert(agenda, task, task->due_ns);
}

static void redo_remove_task(struct tasks *tasks, struct agenda *agenda, struct task *task)
{
	redo_unfile(agenda, task);
	tasks_remove(tasks, task);
}

/* Of a live one: a key has one task at most, so the record of the old one's end was damaged. */
static void redo_free_key(struct tasks *tasks, struct agenda *agenda, const struct record *record)
{
	struct task *old = tasks_find_key(tasks, record->key, record->key_len);

	if (old)
		redo_remove_task(tasks, agenda, old);
}

static int redo_put(struct tasks *tasks, struct agenda *agenda, const struct record *record,
                    const struct log_position *position)
{
	struct task *old = tasks_find(tasks, record->id);
	struct task *task = task_new(record);
	int result = task ? redo_make_room(tasks, agenda) : -ENOMEM;

	if (result == 0 && task->key_len > 0)
		result = tasks_reserve_keys(tasks);
	if (result < 0) {
		free(task);
		return result;
	}
	/* copied by compaction, and a crash came before the drop */
	if (old)
		redo_remove_task(tasks, agenda, old);
	if (task->key_len > 0)
		redo_free_key(tasks, agenda, record);
	task->segment = (uint32_t)position->segment;
	task->offset8 = (uint32_t)(position->offset / RECORD_ALIGN_BYTES);
	tasks_insert(tasks, task);
	redo_file(agenda, task, (record->flags & RECORD_PARKED) != 0 ? TASK_PARKED : TASK_PENDING);
	return 0;
}

static void redo_change(struct agenda *agenda, struct task *task, const struct record *record)
{
	redo_unfile(agenda, task);
	task->due_ns = record->due_ns;
	if (record->type == RECORD_RENEW)
		task->attempts = 0;
	if (record->type == RECORD_PARK) {
		task->attempts = record->attempts;
		task->reason = record->reason;
	}
	redo_file(agenda, task, record->type == RECORD_PARK ? TASK_PARKED : TASK_PENDING);
}

int redo_record(struct tasks *tasks, struct agenda *agenda, const struct record *record,
                const struct log_position *position)
{
	struct task *task;

	if (record->type == RECORD_PUT || record->type == RECORD_COPY)
		return redo_put(tasks, agenda, record, position);
	task = tasks_find(tasks, record->id);
	/* unknown: it has ended, and its first record was dropped */
	if (!task)
		return 0;
	if (record->type == RECORD_TAKE)
		task->attempts = record->attempts;
	else if (record->type == RECORD_CANCEL || record->type == RECORD_DONE)
		redo_remove_task(tasks, agenda, task);
	else if (record->type != RECORD_CLOSE)
		redo_change(agenda, task, record);
	return 0;
}
