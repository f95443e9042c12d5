/* SPDX-License-Identifier: MIT */
/*
 * See repair.h. The tasks found are copied into one new segment behind the old ones; when it is
 * stable those are renamed, for whoever wants to look at them, one after the other from the first;
 * then another segment says that the journal begins with the new one. Killed at any point it can be
 * run again, with the same outcome: of what is left, the later records always decide.
 */
#include "repair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <crc32c.h>
#include <reader.h>
#include <replay.h>

static int copy_task(struct log *log, const struct task *task)
{
	size_t bytes = record_bytes(task->data_len);
	uint8_t *record_at = malloc(bytes);
	struct record record = {
		.type = RECORD_COPY,
		.id = task->id,
		.due_ns = task->due_ns,
		.attempts = task->attempts,
		.data = task->data,
		.data_len = task->data_len,
		.data_crc = crc32c(0, task->data, task->data_len),
	};
	struct log_place place;
	int result;

	if (!record_at)
		return -ENOMEM;
	record_encode(record_at, &record);
	result = log_append(log, record_at, bytes, false, &place);
	free(record_at);
	return result;
}

/* Out of the way, under a name that says what it is. */
static int set_aside(struct disk *disk, uint64_t number)
{
	char name[DISK_NAME_MAX], bad[DISK_NAME_MAX + 4];
	int result;

	segment_name(name, number);
	(void)snprintf(bad, sizeof(bad), "%s.bad", name);
	result = disk->ops->rename(disk, name, bad);
	/* Each before the next: a later one alone is consistent, an earlier one is not. */
	return result == 0 ? disk->ops->sync_dir(disk) : result;
}

static int set_all_aside(struct disk *disk, const struct log *old)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < old->count; i++)
		result = set_aside(disk, old->segments[i].number);
	return result;
}

/* One segment for all, however large: readers do not mind, and compaction will divide it. */
static int copy_all(struct log *log, const struct replay *replay)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < replay->agenda.count; i++)
		result = copy_task(log, replay->agenda.cells[i].task);
	return result == 0 ? log_sync(log) : result;
}

static int write_anew(struct disk *disk, struct replay *replay)
{
	const struct log *old = &replay->log;
	uint64_t oldest = old->count > 0 ? old->segments[0].number : 1;
	uint64_t number = old->count > 0 ? old->segments[old->count - 1].number + 1 : 1;
	struct log log = {
		.disk = disk,
		.segment_bytes = UINT64_MAX,
		.file = -1,
		.sequence = old->sequence,
		.stable = old->sequence,
		.next_id = old->next_id,
	};
	int result = log_begin_segment(&log, number, oldest);

	if (result == 0)
		result = copy_all(&log, replay);
	if (result == 0)
		result = set_all_aside(disk, old);
	if (result == 0)
		result = log_begin_segment(&log, number + 1, number);
	log_close(&log);
	return result;
}

static int salvage(struct disk *disk, struct repair_report *report)
{
	struct replay replay = { .log = { .disk = disk, .file = -1 } };
	int result = replay_run(&replay, REPLAY_SALVAGE);

	report->tasks = replay.tasks.count;
	report->lost_bytes = replay.lost_bytes;
	if (result == 0)
		result = write_anew(disk, &replay);
	replay_fini(&replay);
	return result;
}

int repair_run(struct disk *disk, struct repair_report *ret_report)
{
	struct replay replay = { .log = { .disk = disk, .file = -1 } };
	struct repair_report report = { .was_whole = true };
	int result = disk->ops->lock(disk);

	if (result < 0)
		return result;
	result = replay_run(&replay, REPLAY_OPEN);
	report.tasks = replay.tasks.count;
	report.lost_bytes = replay.torn_bytes;
	replay_fini(&replay);
	if (result == -EBADMSG) {
		report.was_whole = false;
		result = salvage(disk, &report);
	}
	if (result == 0)
		*ret_report = report;
	return result;
}
