/* SPDX-License-Identifier: MIT */
/*
 * See compactor.h. The leader's, behind a batch; deliveries go on meanwhile. Only the
 * first segment is ever cleaned: the record that ends a task is always behind the one that began
 * it, so whatever the first segment says of a task that is not live there can be forgotten.
 */
#include "journal/compactor.h"

#include <errno.h>
#include <stdlib.h>

#define STEP_BYTES ((size_t)64 << 10)
/* What a round adds to the live records, for each segment that there is. */
#define ROUND_BYTES (2u * SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES)

void cleaner_init(struct cleaner *cleaner, struct log *log, struct lock *lock, struct tasks *tasks)
{
	*cleaner = (struct cleaner){
		.log = log,
		.lock = lock,
		.tasks = tasks,
		.reader = { .file = -1 },
	};
}

void cleaner_fini(struct cleaner *cleaner)
{
	reader_close(&cleaner->reader);
	free(cleaner->buffer);
	cleaner_init(cleaner, cleaner->log, cleaner->lock, cleaner->tasks);
}

/*
 * Does the disk hold more than `halves` times half of what is live, and a segment; and can a round
 * free enough? A round over N segments writes the live records again, a record for each segment
 * dropped, and at most 2 N + 1 headers. A round frees all other records. If that is less than a
 * quarter of a segment, no round begins: compaction ends, whatever else takes the room.
 */
static bool cleaner_is_over(struct cleaner *cleaner, unsigned halves)
{
	struct log *log = cleaner->log;
	uint64_t live, ends, kept;

	lock_take(cleaner->lock);
	live = cleaner->tasks->live_bytes;
	ends = cleaner->tasks->count * (uint64_t)RECORD_HEADER_BYTES;
	lock_give(cleaner->lock);
	log_release(log, ends);
	kept = live - ends + (log->count + (uint64_t)1) * ROUND_BYTES + log->segment_bytes / 4;
	return log_disk_bytes(log) > live / 2 * halves + log->segment_bytes &&
	       log->bytes - log->ahead >= kept;
}

/* Returns the bytes of records that fit in a segment. */
static size_t cleaner_most(const struct cleaner *cleaner)
{
	return (size_t)cleaner->log->segment_bytes - SEGMENT_HEADER_BYTES;
}

static void cleaner_rest(struct cleaner *cleaner)
{
	reader_close(&cleaner->reader);
	cleaner->state = CLEANER_RESTS;
}

static bool cleaner_give_up(struct cleaner *cleaner)
{
	cleaner_rest(cleaner);
	cleaner->used = 0;
	cleaner->blocked = true;
	return false;
}

/* ---- copies ---- */

static bool cleaner_make_room(struct cleaner *cleaner, size_t bytes)
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

/* The lock is held. */
static struct record cleaner_record(const struct task *task)
{
	bool parked = task->state == TASK_PARKED;

	return (struct record){
		.type = RECORD_COPY,
		.flags = parked ? RECORD_PARKED : 0,
		.id = task->id,
		.due_ns = task->due_ns,
		.interval_ns = task->interval_ns,
		.attempts = task->attempts,
		.reason = parked ? task->reason : 0,
		.key = task_key(task),
		.key_len = task->key_len,
		.data = task_data(task),
		.data_len = task->data_len,
	};
}

/*
 * Copy a task that is live in the first segment. Only the leader ends tasks and moves them on disk:
 * the lock is for what others change. 0, or -ENOSPC: what there is must be written first, or a
 * segment would grow beyond its size.
 */
static int cleaner_copy(struct cleaner *cleaner, const struct task *task)
{
	size_t bytes = tasks_record_bytes(task);
	struct record record;

	if (cleaner->used > 0 && cleaner->used + bytes > cleaner_most(cleaner))
		return -ENOSPC;
	if (!cleaner_make_room(cleaner, bytes))
		return -ENOMEM;
	lock_take(cleaner->lock);
	record = cleaner_record(task);
	lock_give(cleaner->lock);
	record.body_crc = record_body_crc(&record);
	record_encode(cleaner->buffer + cleaner->used, &record);
	cleaner->used += bytes;
	return 0;
}

/* Returns the task that is live in the record at this place; NULL: none is. */
static struct task *cleaner_find(struct cleaner *cleaner, const struct record *record,
                                 uint64_t offset)
{
	struct task *task;

	if (record->type != RECORD_PUT && record->type != RECORD_COPY)
		return NULL;
	lock_take(cleaner->lock);
	task = tasks_find(cleaner->tasks, record->id);
	lock_give(cleaner->lock);
	if (!task || task->segment != (uint32_t)cleaner->reader.header.number ||
	    task->offset8 != offset / RECORD_ALIGN_BYTES)
		return NULL;
	return task;
}

/* Read on, until there is enough to write. 1: there may be more; 0: the segment is read. */
static int cleaner_read(struct cleaner *cleaner, size_t enough)
{
	uint64_t begin = cleaner->reader.offset;

	while (cleaner->used < enough && cleaner->reader.offset - begin < STEP_BYTES) {
		uint64_t offset = cleaner->reader.offset;
		struct record record;
		int result = reader_next(&cleaner->reader, &record);
		const struct task *task;

		if (result <= 0)
			return result;
		task = cleaner_find(cleaner, &record, offset);
		result = task ? cleaner_copy(cleaner, task) : 0;
		if (result == -ENOSPC) {
			cleaner->reader.offset = offset;
			return 1;
		}
		if (result < 0)
			return result;
	}
	return 1;
}

/* Returns the next task of a bucket that is live in the first segment; NULL: there is none. */
static struct task *cleaner_next_in_bucket(struct cleaner *cleaner, struct task *after)
{
	uint32_t first = (uint32_t)cleaner->log->segments[0].number;
	struct task *task;

	lock_take(cleaner->lock);
	task = after ? after->next : cleaner->tasks->buckets[cleaner->bucket];
	while (task && (task->segment != first || task->state == TASK_ARRIVING))
		task = task->next;
	lock_give(cleaner->lock);
	return task;
}

/*
 * As cleaner_read(), from the tables. A bucket that does not fit is asked again from its beginning.
 */
static int cleaner_ask(struct cleaner *cleaner, size_t enough)
{
	while (cleaner->bucket < cleaner->tasks->buckets_count) {
		struct task *task = NULL;

		while ((task = cleaner_next_in_bucket(cleaner, task))) {
			int result = cleaner_copy(cleaner, task);

			if (result < 0)
				return result == -ENOSPC ? 1 : result;
		}
		cleaner->bucket++;
		if (cleaner->used >= enough)
			return 1;
	}
	return 0;
}

/* ---- a step ---- */

/* The copies are where the tasks are now. */
static void cleaner_move_tasks(struct cleaner *cleaner, const struct log_place *place)
{
	size_t at = 0;

	lock_take(cleaner->lock);
	while (at < cleaner->used) {
		struct record record;
		struct task *task;

		/* Sealed a moment ago; it cannot be bad. */
		(void)record_decode_header(cleaner->buffer + at, cleaner->log->salt, &record);
		task = tasks_find(cleaner->tasks, record.id);
		task->segment = (uint32_t)place->segment;
		task->offset8 = (uint32_t)((place->offset + at) / RECORD_ALIGN_BYTES);
		at += record_size_at(cleaner->buffer + at);
	}
	lock_give(cleaner->lock);
	cleaner->copied_bytes += at;
	cleaner->used = 0;
}

/* A record that comes before any drop: so on a full disk it may use the spare. */
static bool cleaner_drop(struct cleaner *cleaner)
{
	struct log *log = cleaner->log;
	struct record record = { .type = RECORD_DROP, .id = log->segments[1].number };
	uint8_t bytes[RECORD_HEADER_BYTES];
	bool asked = cleaner->state == CLEANER_ASKS;
	struct log_place place;

	cleaner_rest(cleaner);
	record_encode(bytes, &record);
	if (log_append(log, bytes, sizeof(bytes), LOG_SYNC | LOG_SPARE, &place) < 0 ||
	    log_drop_first(log) < 0)
		return cleaner_give_up(cleaner);
	cleaner->dropped++;
	cleaner->healed += asked;
	return true;
}

static void cleaner_begin(struct cleaner *cleaner)
{
	struct log *log = cleaner->log;

	cleaner->state = CLEANER_READS;
	cleaner->bucket = 0;
	if (reader_open(&cleaner->reader, log->disk, log->segments[0].number, false, false) < 0) {
		reader_close(&cleaner->reader);
		cleaner->state = CLEANER_ASKS;
	}
	/* A refused write may have left something behind the good records. */
	cleaner->reader.end = log->segments[0].bytes;
}

static int cleaner_collect(struct cleaner *cleaner, size_t enough)
{
	int result;

	if (cleaner->state == CLEANER_RESTS)
		cleaner_begin(cleaner);
	if (cleaner->state == CLEANER_READS) {
		result = cleaner_read(cleaner, enough);
		if (result >= 0 || result == -ENOMEM)
			return result;
		/* What was collected is written first, so that it is not copied twice. */
		reader_close(&cleaner->reader);
		cleaner->state = CLEANER_ASKS;
		return 1;
	}
	return cleaner_ask(cleaner, enough);
}

static bool cleaner_is_paused(struct cleaner *cleaner)
{
	bool paused;

	lock_take(cleaner->lock);
	paused = cleaner->pauses > 0;
	lock_give(cleaner->lock);
	return paused;
}

static bool cleaner_may_work(struct cleaner *cleaner)
{
	return !cleaner->blocked && !cleaner_is_paused(cleaner);
}

/* Copy about so many bytes. False: nothing to do, or it cannot be done now. */
static bool cleaner_step(struct cleaner *cleaner, size_t enough)
{
	struct log_place place;
	int more;

	if (cleaner->log->count < 2 || !cleaner_may_work(cleaner))
		return false;
	more = cleaner_collect(cleaner, enough);
	if (more < 0)
		return cleaner_give_up(cleaner);
	if (cleaner->used > 0) {
		if (log_append(cleaner->log, cleaner->buffer, cleaner->used, 0, &place) < 0)
			return cleaner_give_up(cleaner);
		cleaner_move_tasks(cleaner, &place);
	}
	return more > 0 || cleaner_drop(cleaner);
}

bool cleaner_is_due(struct cleaner *cleaner)
{
	cleaner->wanted = cleaner->log->count > 1 && cleaner_is_over(cleaner, 3);
	return cleaner->wanted && cleaner_may_work(cleaner);
}

bool cleaner_work(struct cleaner *cleaner, size_t batch_bytes, bool early)
{
	size_t enough = 2 * batch_bytes + STEP_BYTES / 2;
	bool worked = false;

	if (enough > cleaner_most(cleaner))
		enough = cleaner_most(cleaner);
	if (early && cleaner_is_due(cleaner))
		worked = cleaner_step(cleaner, enough);
	while (cleaner_is_over(cleaner, 4) && cleaner_step(cleaner, enough))
		worked = true;
	return worked;
}
