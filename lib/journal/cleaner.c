/* SPDX-License-Identifier: MIT */
/*
 * See cleaner.h. The writer's thread, between two batches; deliveries go on meanwhile. Only the
 * first segment is ever cleaned: what ends a task's life is always behind what began it, so that
 * whatever the first segment says of a task that is not live there can be forgotten.
 */
#include "cleaner.h"

#include <errno.h>
#include <stdlib.h>

#include "journal.h"

#define STEP_BYTES ((size_t)64 << 10)

void cleaner_fini(struct cleaner *cleaner)
{
	reader_close(&cleaner->reader);
	free(cleaner->buffer);
	*cleaner = (struct cleaner){ .buffer = NULL };
}

/* Is the log larger than `halves` times half of what is live, and a segment? */
static bool is_over(struct timerhub_journal *journal, unsigned halves)
{
	uint64_t live;

	lock_take(&journal->lock);
	live = journal->tasks.live_bytes;
	lock_give(&journal->lock);
	return journal->log.bytes > live / 2 * halves + journal->log.segment_bytes;
}

/* What fits in a segment. */
static size_t most(const struct timerhub_journal *journal)
{
	return (size_t)journal->log.segment_bytes - SEGMENT_HEADER_BYTES;
}

static void stop_reading(struct cleaner *cleaner)
{
	reader_close(&cleaner->reader);
	cleaner->reading = false;
}

static bool give_up(struct cleaner *cleaner)
{
	stop_reading(cleaner);
	cleaner->used = 0;
	cleaner->blocked = true;
	return false;
}

/* The task that this record, at this place, is the live form of; NULL: of none. */
static struct task *live_here(struct timerhub_journal *journal, const struct record *record,
                              uint64_t offset)
{
	struct task *task = tasks_find(&journal->tasks, record->id);

	if (!task || (record->type != RECORD_PUT && record->type != RECORD_COPY) ||
	    task->segment != (uint32_t)journal->cleaner.reader.header.number ||
	    task->offset8 != offset / RECORD_ALIGN_BYTES)
		return NULL;
	return task;
}

static bool make_room(struct cleaner *cleaner, size_t bytes)
{
	size_t needed = cleaner->used + bytes;
	uint8_t *larger;

	if (needed <= cleaner->capacity)
		return true;
	if (needed < STEP_BYTES)
		needed = STEP_BYTES;
	larger = realloc(cleaner->buffer, needed);
	if (!larger)
		return false;
	cleaner->buffer = larger;
	cleaner->capacity = needed;
	return true;
}

/*
 * Only the writer frees tasks and moves them on disk; others may take it meanwhile: the lock. 0, or
 * -ENOSPC: what there is must be written first, or a segment would grow beyond its size.
 */
static int copy(struct timerhub_journal *journal, const struct record *record, uint64_t offset)
{
	struct cleaner *cleaner = &journal->cleaner;
	struct record as_is = *record;
	struct task *task;

	if (cleaner->used > 0 && cleaner->used + record_bytes(record->data_len) > most(journal))
		return -ENOSPC;
	if (!make_room(cleaner, record_bytes(record->data_len)))
		return -ENOMEM;
	lock_take(&journal->lock);
	task = live_here(journal, record, offset);
	if (task) {
		as_is.type = RECORD_COPY;
		as_is.due_ns = task->due_ns;
		as_is.attempts = task->attempts;
	}
	lock_give(&journal->lock);
	if (!task)
		return 0;
	record_encode(cleaner->buffer + cleaner->used, &as_is);
	cleaner->used += record_bytes(as_is.data_len);
	return 0;
}

/* Read on, until there is enough to write. 1: there may be more; 0: the segment is read. */
static int collect(struct timerhub_journal *journal, size_t enough)
{
	struct cleaner *cleaner = &journal->cleaner;
	uint64_t begin = cleaner->reader.offset;

	while (cleaner->used < enough && cleaner->reader.offset - begin < STEP_BYTES) {
		uint64_t offset = cleaner->reader.offset;
		struct record record;
		int result = reader_next(&cleaner->reader, &record);

		if (result <= 0)
			return result;
		result = copy(journal, &record, offset);
		if (result == -ENOSPC) {
			cleaner->reader.offset = offset;
			return 1;
		}
		if (result < 0)
			return result;
	}
	return 1;
}

/* The copies are where the tasks are now. */
static void settle(struct timerhub_journal *journal, const struct log_place *place)
{
	struct cleaner *cleaner = &journal->cleaner;
	size_t at = 0;

	lock_take(&journal->lock);
	while (at < cleaner->used) {
		struct record record;
		struct task *task;

		/* Sealed a moment ago; it cannot be bad. */
		(void)record_decode_header(cleaner->buffer + at, journal->log.salt, &record);
		task = tasks_find(&journal->tasks, record.id);
		task->segment = (uint32_t)place->segment;
		task->offset8 = (uint32_t)((place->offset + at) / RECORD_ALIGN_BYTES);
		at += record_bytes(record.data_len);
	}
	journal->stats.copied_bytes += at;
	lock_give(&journal->lock);
	cleaner->used = 0;
}

/* Everything live has been copied: say so, make it stable, and drop the segment. */
static bool drop(struct timerhub_journal *journal)
{
	struct record record = { .type = RECORD_DROP, .id = journal->log.segments[1].number };
	uint8_t bytes[RECORD_HEADER_BYTES];
	struct log_place place;

	stop_reading(&journal->cleaner);
	record_encode(bytes, &record);
	if (log_append(&journal->log, bytes, sizeof(bytes), true, &place) < 0 ||
	    log_drop_first(&journal->log) < 0)
		return give_up(&journal->cleaner);
	lock_take(&journal->lock);
	journal->stats.segments_dropped++;
	lock_give(&journal->lock);
	return true;
}

static bool begin_reading(struct timerhub_journal *journal)
{
	struct cleaner *cleaner = &journal->cleaner;

	if (cleaner->reading)
		return true;
	if (reader_open(&cleaner->reader, journal->disk, journal->log.segments[0].number, false) <
	    0)
		return give_up(cleaner);
	/* A refused write may have left something behind the good records. */
	cleaner->reader.end = journal->log.segments[0].bytes;
	cleaner->reading = true;
	return true;
}

/* Copy about so many bytes. False: nothing to do, or it cannot be done now. */
static bool step(struct timerhub_journal *journal, size_t enough)
{
	struct cleaner *cleaner = &journal->cleaner;
	struct log_place place;
	int more;

	if (cleaner->blocked || journal->log.count < 2 || !begin_reading(journal))
		return false;
	more = collect(journal, enough);
	if (more < 0)
		return give_up(cleaner);
	if (cleaner->used > 0) {
		if (log_append(&journal->log, cleaner->buffer, cleaner->used, false, &place) < 0)
			return give_up(cleaner);
		settle(journal, &place);
	}
	return more > 0 || drop(journal);
}

bool cleaner_work(struct timerhub_journal *journal, size_t batch_bytes)
{
	size_t enough = 2 * batch_bytes + STEP_BYTES / 2;
	bool worked = false;

	if (enough > most(journal))
		enough = most(journal);
	if (is_over(journal, 3))
		worked = step(journal, enough);
	while (is_over(journal, 4) && step(journal, enough))
		worked = true;
	return worked;
}
