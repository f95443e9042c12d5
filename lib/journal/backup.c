/* SPDX-License-Identifier: MIT */
/*
 * Any thread; opens the directory once more, and reads without the journal's lock. The watermark
 * comes first, and that of the last record to copy before the segments: an open refuses a copy
 * without segments, and one that ends before its watermark.
 * Tested by test_calls.c, with changes meanwhile, and tool_test.py.
 */
#include "journal/backup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal/keeper.h"
#include "journal/reader.h"
#include "journal/replay.h"
#include "journal/state.h"
#include "journal/watermark.h"

#define COPY_BYTES ((size_t)256 << 10)
#define TRIES_MAX 100

static int backup_found_name(void *context, const char *name)
{
	(void)context;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? 0 : -ENOTEMPTY;
}

struct backup {
	struct disk *from;
	struct disk *to;
	bool by_copy; /* an error came from the disk of the copy, not of the journal */
};

/* Of a call on the copy's disk: an error sets `by_copy`. Returns `result`. */
static int backup_of_copy(struct backup *backup, int result)
{
	backup->by_copy = backup->by_copy || result < 0;
	return result;
}

static int backup_write_all(struct backup *backup, int file, const uint8_t *bytes, size_t count,
                            uint64_t at)
{
	struct disk *to = backup->to;

	while (count > 0) {
		int64_t written = to->ops->write(to, file, bytes, count, at);

		if (written <= 0)
			return backup_of_copy(backup, written < 0 ? (int)written : -ENOSPC);
		bytes += written;
		at += (uint64_t)written;
		count -= (size_t)written;
	}
	return 0;
}

static int backup_copy_bytes(struct backup *backup, int source, int target, uint64_t bytes)
{
	struct disk *from = backup->from, *to = backup->to;
	uint8_t *buffer = malloc(COPY_BYTES);
	int result = buffer ? 0 : -ENOMEM;

	for (uint64_t at = 0; result == 0 && at < bytes;) {
		size_t want = bytes - at < COPY_BYTES ? (size_t)(bytes - at) : COPY_BYTES;
		int64_t got = from->ops->read(from, source, buffer, want, at);

		if (got <= 0) {
			result = got < 0 ? (int)got : -EIO;
			break;
		}
		result = backup_write_all(backup, target, buffer, (size_t)got, at);
		at += (uint64_t)got;
	}
	free(buffer);
	return result == 0 ? backup_of_copy(backup, to->ops->sync(to, target)) : result;
}

static int backup_copy_segment(struct backup *backup, const struct segment *segment)
{
	struct disk *from = backup->from, *to = backup->to;
	char name[DISK_NAME_MAX];
	int source, target, result;
	uint64_t size;

	segment_name(name, segment->number);
	source = from->ops->open(from, name, false, &size);
	if (source < 0)
		return source;
	target = backup_of_copy(backup, to->ops->create(to, name));
	result = target < 0 ? target : backup_copy_bytes(backup, source, target, segment->bytes);
	if (target >= 0)
		to->ops->close(to, target);
	from->ops->close(from, source);
	return result;
}

static int backup_mark(struct backup *backup, bool is_there, uint64_t sequence)
{
	struct disk *to = backup->to;
	int file = backup_of_copy(backup, watermark_open(to, is_there, sequence));

	if (file < 0)
		return file;
	to->ops->close(to, file);
	return 0;
}

static int backup_write(struct backup *backup, const struct log *log)
{
	struct disk *to = backup->to;
	int result = backup_mark(backup, true, log->sequence);

	for (uint32_t i = 0; result == 0 && i < log->count; i++)
		result = backup_copy_segment(backup, &log->segments[i]);
	return result == 0 ? backup_of_copy(backup, to->ops->sync_dir(to)) : result;
}

/* Before another attempt. The watermark stays, so that an open refuses what is left. */
static void backup_clear(const struct replay *replay, struct disk *to)
{
	char name[DISK_NAME_MAX];

	for (uint32_t i = 0; i < replay->log.count; i++) {
		segment_name(name, replay->log.segments[i].number);
		(void)to->ops->unlink(to, name);
	}
}

/* Compaction dropped a segment during the copy. */
static bool backup_begins_again(const struct backup *backup, int result)
{
	return result == -ENOENT && !backup->by_copy;
}

static int backup_once(struct backup *backup)
{
	struct replay replay;
	int result;

	replay_init(&replay, backup->from, 0);
	result = replay_run(&replay, REPLAY_VERIFY);
	if (result == 0)
		result = backup_write(backup, &replay.log);
	if (backup_begins_again(backup, result))
		backup_clear(&replay, backup->to);
	replay_fini(&replay);
	return result;
}

/* Check that timerhub_journal_open() would find a complete journal in the copy. */
static int backup_check(struct disk *to)
{
	struct replay replay;
	int result;

	replay_init(&replay, to, 0);
	result = replay_run(&replay, REPLAY_VERIFY);
	replay_fini(&replay);
	return result;
}

static int backup_run(struct backup *backup)
{
	struct disk *to = backup->to;
	int result = backup_of_copy(backup, to->ops->list(to, backup_found_name, NULL));

	if (result == 0)
		result = backup_mark(backup, false, 0);
	if (result < 0)
		return result;
	result = backup_once(backup);
	for (unsigned i = 1; i < TRIES_MAX && backup_begins_again(backup, result); i++)
		result = backup_once(backup);
	if (result == 0)
		result = backup_of_copy(backup, backup_check(to));
	return backup_begins_again(backup, result) ? -EBUSY : result;
}

int backup_to(struct disk *from, struct disk *to)
{
	struct backup backup = { .from = from, .to = to };

	return backup_run(&backup);
}

int backup_copy(struct disk *from, const char *to_dir, bool *ret_by_copy)
{
	struct backup backup = { .from = from };
	int result = backup_of_copy(&backup, disk_real_open(&backup.to, to_dir));

	if (result == 0) {
		result = backup_run(&backup);
		disk_real_close(backup.to);
	}
	*ret_by_copy = backup.by_copy;
	return result;
}

static int backup_journal(struct timerhub_journal *journal, const char *to)
{
	struct disk *from;
	bool by_copy;
	int result = disk_real_open_again(&from, journal->disk);

	if (result < 0)
		return result;
	keeper_pause_compaction(journal);
	result = backup_copy(from, to, &by_copy);
	keeper_resume_compaction(journal);
	disk_real_close(from);
	return result;
}

int timerhub_journal_backup(struct timerhub_journal *journal, const char *to)
{
	int before, result;

	if (!journal || !to || !journal->owns)
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	/* cancelled, a thread would leave compaction paused */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	result = backup_journal(journal, to);
	(void)pthread_setcancelstate(before, NULL);
	return result;
}
