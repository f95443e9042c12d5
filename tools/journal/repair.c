/* SPDX-License-Identifier: MIT */
/*
 * See repair.h. Copies all tasks that can be read into one new segment behind the old ones. When it
 * is stable, renames the old segments to *.bad, from the first to the last, and writes a second new
 * segment, whose header says that the journal begins with the first. A later record of a task
 * replaces an earlier one, so a repair that was killed can be run again.
 */
#include "repair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <journal/log_append.h>
#include <journal/reader.h>
#include <journal/replay.h>

static int repair_copy(struct log *log, const struct task *task)
{
	size_t bytes = tasks_record_bytes(task);
	uint8_t *record_at = malloc(bytes);
	struct record record = {
		.type = RECORD_COPY,
		.flags = task->state == TASK_PARKED ? RECORD_PARKED : 0,
		.id = task->id,
		.due_ns = task->due_ns,
		.interval_ns = task->interval_ns,
		.attempts = task->attempts,
		.reason = task->state == TASK_PARKED ? task->reason : 0,
		.key = task_key(task),
		.key_len = task->key_len,
		.data = task_data(task),
		.data_len = task->data_len,
	};
	struct log_position position;
	int result;

	if (!record_at)
		return -ENOMEM;
	record.body_crc = record_body_crc(&record);
	record_encode(record_at, &record);
	result = log_append(log, record_at, bytes, 0, &position);
	free(record_at);
	return result;
}

static int repair_set_aside(struct disk *disk, uint64_t number)
{
	char name[DISK_NAME_MAX], bad[DISK_NAME_MAX + 4];
	int result;

	segment_name(name, number);
	(void)snprintf(bad, sizeof(bad), "%s.bad", name);
	result = disk->ops->rename(disk, name, bad);
	/* a repair may be killed, and a journal is consistent without its first segments only */
	return result == 0 ? disk->ops->sync_dir(disk) : result;
}

static int repair_set_all_aside(struct disk *disk, const struct log *old)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < old->count; i++)
		result = repair_set_aside(disk, old->segments[i].number);
	return result;
}

struct copying {
	struct log *log;
	int result;
};

static void repair_copy_one(void *context, struct task *task)
{
	struct copying *copying = context;

	if (copying->result == 0)
		copying->result = repair_copy(copying->log, task);
}

/* Into one segment of any size, which compaction divides later. */
static int repair_copy_all(struct log *log, const struct replay *replay)
{
	struct copying copying = { .log = log };

	tasks_each(&replay->tasks, repair_copy_one, &copying);
	return copying.result == 0 ? log_sync(log) : copying.result;
}

static int repair_write_anew(struct disk *disk, struct replay *replay)
{
	const struct log *old = &replay->log;
	uint64_t oldest = old->count > 0 ? old->segments[0].number : 1;
	uint64_t number = old->count > 0 ? old->segments[old->count - 1].number + 1 : 1;
	struct log log;
	int result;

	log_init(&log, disk, UINT64_MAX);
	log.sequence = log.stable = old->sequence;
	log.next_id = old->next_id;
	result = log_begin_segment(&log, number, oldest);
	if (result == 0)
		result = repair_copy_all(&log, replay);
	if (result == 0)
		result = repair_set_all_aside(disk, old);
	if (result == 0)
		result = log_begin_segment(&log, number + 1, number);
	log_close(&log);
	return result;
}

/* Check that timerhub_journal_open() would accept the repaired journal. */
static int repair_check(struct disk *disk)
{
	struct replay replay;
	int result;

	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_VERIFY);
	replay_fini(&replay);
	return result;
}

static int repair_salvage(struct disk *disk, struct repair_report *report)
{
	struct replay replay;
	int result;

	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_SALVAGE);
	report->tasks = replay.tasks.count;
	report->lost_bytes = replay.lost_bytes;
	if (result == 0)
		result = repair_write_anew(disk, &replay);
	replay_fini(&replay);
	return result == 0 ? repair_check(disk) : result;
}

int repair_run(struct disk *disk, struct repair_report *ret_report)
{
	struct repair_report report = { .was_whole = true };
	struct replay replay;
	int result = disk->ops->lock(disk);

	if (result < 0)
		return result;
	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_OPEN);
	report.tasks = replay.tasks.count;
	report.lost_bytes = replay.torn_bytes;
	replay_fini(&replay);
	/* a record that cannot be read (-EIO) is damaged; a failed write ends the repair */
	if (result == -EBADMSG || result == -EIO) {
		report.was_whole = false;
		result = repair_salvage(disk, &report);
	}
	if (result == 0)
		*ret_report = report;
	return result;
}
