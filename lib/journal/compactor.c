/* SPDX-License-Identifier: MIT */
/*
 * Implements compaction (compactor.h): copies the live tasks of the first segment and drops the
 * segment. The leader compacts after a batch, and tasks are delivered during compaction. The record
 * that ends a task is always behind the record that put the task. Therefore compaction copies only
 * live tasks whose data is in the first segment.
 */
#include "journal/compactor.h"

#include <errno.h>
#include <stdlib.h>

#define STEP_BYTES ((size_t)64 << 10)
/*
 * Bytes that compaction writes for each dropped segment, beside the copies of tasks: two segment
 * headers and one DROP record.
 */
#define ROUND_BYTES (2u * SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES)

void compactor_init(struct compactor *compactor, struct log *log, struct lock *lock,
                    struct tasks *tasks)
{
	*compactor = (struct compactor){
		.log = log,
		.lock = lock,
		.tasks = tasks,
		.reader = { .file = -1 },
	};
}

void compactor_fini(struct compactor *compactor)
{
	reader_close(&compactor->reader);
	free(compactor->buffer);
	compactor_init(compactor, compactor->log, compactor->lock, compactor->tasks);
}

/*
 * Returns whether a round of compaction must begin. The files must be larger than a limit. The
 * limit is `halves` times half the live tasks' bytes, plus the size of one segment. The round must
 * also free at least a quarter of a segment. Without this condition, rounds would follow each other
 * without end if the spare file makes the files larger than the limit. A round over N segments
 * writes copies of the live records, N DROP records, and at most 2N+1 segment headers.
 */
static bool compactor_is_over(struct compactor *compactor, unsigned halves)
{
	struct log *log = compactor->log;
	uint64_t live, ends, kept;

	lock_take(compactor->lock);
	live = compactor->tasks->live_bytes;
	ends = compactor->tasks->count * (uint64_t)RECORD_HEADER_BYTES;
	lock_give(compactor->lock);
	log_release(log, ends);
	kept = live - ends + (log->count + (uint64_t)1) * ROUND_BYTES + log->segment_bytes / 4;
	return log_disk_bytes(log) > live / 2 * halves + log->segment_bytes &&
	       log->bytes - log->ahead >= kept;
}

/* Returns the number of bytes of records that fit in a segment. */
static size_t compactor_most(const struct compactor *compactor)
{
	return (size_t)compactor->log->segment_bytes - SEGMENT_HEADER_BYTES;
}

static void compactor_end_round(struct compactor *compactor)
{
	reader_close(&compactor->reader);
	compactor->state = COMPACTOR_IDLE;
}

static bool compactor_give_up(struct compactor *compactor)
{
	compactor_end_round(compactor);
	compactor->used = 0;
	compactor->blocked = true;
	return false;
}

/* ---- copies ---- */

static bool compactor_make_room(struct compactor *compactor, size_t bytes)
{
	size_t needed = compactor->used + bytes;
	uint8_t *larger;

	if (needed <= compactor->capacity)
		return true;
	if (needed < STEP_BYTES)
		needed = STEP_BYTES;
	larger = realloc(compactor->buffer, needed);
	if (!larger)
		return false;
	compactor->buffer = larger;
	compactor->capacity = needed;
	return true;
}

/* Returns the record of a copied task. The caller holds the journal's lock. */
static struct record compactor_record(const struct task *task)
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
 * Add a copy of a live task of the first segment to the buffer. Only the leader ends a task or
 * changes its place on disk, so the task stays live during the copy. The lock protects the fields
 * of the task that other threads change. Returns 0, -ENOMEM, or -ENOSPC if the buffered copies fill
 * a segment and must be written first.
 */
static int compactor_copy(struct compactor *compactor, const struct task *task)
{
	size_t bytes = tasks_record_bytes(task);
	struct record record;

	if (compactor->used > 0 && compactor->used + bytes > compactor_most(compactor))
		return -ENOSPC;
	if (!compactor_make_room(compactor, bytes))
		return -ENOMEM;
	lock_take(compactor->lock);
	record = compactor_record(task);
	lock_give(compactor->lock);
	record.body_crc = record_body_crc(&record);
	record_encode(compactor->buffer + compactor->used, &record);
	compactor->used += bytes;
	return 0;
}

/* Returns the live task that the record at `offset` of the first segment holds, or NULL. */
static struct task *compactor_find(struct compactor *compactor, const struct record *record,
                                   uint64_t offset)
{
	struct task *task;

	if (record->type != RECORD_PUT && record->type != RECORD_COPY)
		return NULL;
	lock_take(compactor->lock);
	task = tasks_find(compactor->tasks, record->id);
	lock_give(compactor->lock);
	if (!task || task->segment != (uint32_t)compactor->reader.header.number ||
	    task->offset8 != offset / RECORD_ALIGN_BYTES)
		return NULL;
	return task;
}

/*
 * Read records of the first segment until the buffer has `enough` bytes of copies. Returns 1 if the
 * segment may have more records, or 0 at the segment's end.
 */
static int compactor_read(struct compactor *compactor, size_t enough)
{
	uint64_t begin = compactor->reader.offset;

	while (compactor->used < enough && compactor->reader.offset - begin < STEP_BYTES) {
		uint64_t offset = compactor->reader.offset;
		struct record record;
		int result = reader_next(&compactor->reader, &record);
		const struct task *task;

		if (result <= 0)
			return result;
		task = compactor_find(compactor, &record, offset);
		result = task ? compactor_copy(compactor, task) : 0;
		if (result == -ENOSPC) {
			compactor->reader.offset = offset;
			return 1;
		}
		if (result < 0)
			return result;
	}
	return 1;
}

/*
 * Search the bucket for the next task whose data is in the first segment. Returns the task or NULL.
 * The search begins behind the task `after`, or at the beginning of the bucket if `after` is NULL.
 */
static struct task *compactor_next_in_bucket(struct compactor *compactor, struct task *after)
{
	uint32_t first = (uint32_t)compactor->log->segments[0].number;
	struct task *task;

	lock_take(compactor->lock);
	task = after ? after->next : compactor->tasks->buckets[compactor->bucket];
	while (task && (task->segment != first || task->state == TASK_ARRIVING))
		task = task->next;
	lock_give(compactor->lock);
	return task;
}

/*
 * Copy the tasks of the first segment without reading the segment, by a scan of the table of ids.
 * If the tasks of a bucket do not fit into the buffer, the next step scans that bucket from its
 * beginning.
 */
static int compactor_scan(struct compactor *compactor, size_t enough)
{
	while (compactor->bucket < compactor->tasks->buckets_count) {
		struct task *task = NULL;

		while ((task = compactor_next_in_bucket(compactor, task))) {
			int result = compactor_copy(compactor, task);

			if (result < 0)
				return result == -ENOSPC ? 1 : result;
		}
		compactor->bucket++;
		if (compactor->used >= enough)
			return 1;
	}
	return 0;
}

/* ---- a step ---- */

/* Set each task's place on the disk to the place of its copy. */
static void compactor_move_tasks(struct compactor *compactor, const struct log_position *position)
{
	size_t at = 0;

	lock_take(compactor->lock);
	while (at < compactor->used) {
		struct record record;
		struct task *task;

		/*
		 * record_decode_header() cannot fail, because log_append() has just sealed the
		 * record.
		 */
		(void)record_decode_header(compactor->buffer + at, compactor->log->salt, &record);
		task = tasks_find(compactor->tasks, record.id);
		task->segment = (uint32_t)position->segment;
		task->offset8 = (uint32_t)((position->offset + at) / RECORD_ALIGN_BYTES);
		at += record_size_at(compactor->buffer + at);
	}
	lock_give(compactor->lock);
	compactor->copied_bytes += at;
	compactor->used = 0;
}

/*
 * Drop the first segment, after a record of the drop is stable. If the disk is full, the record of
 * the drop may use the spare room.
 */
static bool compactor_drop(struct compactor *compactor)
{
	struct log *log = compactor->log;
	struct record record = { .type = RECORD_DROP, .id = log->segments[1].number };
	uint8_t bytes[RECORD_HEADER_BYTES];
	bool asked = compactor->state == COMPACTOR_SCANS;
	struct log_position position;

	compactor_end_round(compactor);
	record_encode(bytes, &record);
	if (log_append(log, bytes, sizeof(bytes), LOG_SYNC | LOG_SPARE, &position) < 0 ||
	    log_drop_first(log) < 0)
		return compactor_give_up(compactor);
	compactor->dropped++;
	compactor->healed += asked;
	return true;
}

static void compactor_begin(struct compactor *compactor)
{
	struct log *log = compactor->log;

	compactor->state = COMPACTOR_READS;
	compactor->bucket = 0;
	if (reader_open(&compactor->reader, log->disk, log->segments[0].number, false, false) < 0) {
		reader_close(&compactor->reader);
		compactor->state = COMPACTOR_SCANS;
	}
	/*
	 * Stop the reader at the end of the good records, because a refused write may have left
	 * bytes behind the records.
	 */
	compactor->reader.end = log->segments[0].bytes;
}

static int compactor_collect(struct compactor *compactor, size_t enough)
{
	int result;

	if (compactor->state == COMPACTOR_IDLE)
		compactor_begin(compactor);
	if (compactor->state == COMPACTOR_READS) {
		result = compactor_read(compactor, enough);
		if (result >= 0 || result == -ENOMEM)
			return result;
		/*
		 * The first segment cannot be read. Write the collected copies before the scan, so
		 * that no task is copied twice.
		 */
		reader_close(&compactor->reader);
		compactor->state = COMPACTOR_SCANS;
		return 1;
	}
	return compactor_scan(compactor, enough);
}

static bool compactor_is_paused(struct compactor *compactor)
{
	bool paused;

	lock_take(compactor->lock);
	paused = compactor->pauses > 0;
	lock_give(compactor->lock);
	return paused;
}

static bool compactor_may_work(struct compactor *compactor)
{
	return !compactor->blocked && !compactor_is_paused(compactor);
}

/*
 * Do one step of compaction: copy about `enough` bytes of tasks. If all tasks of the first segment
 * are copied, drop the segment. Returns false if there is nothing to compact, or compaction is
 * impossible now.
 */
static bool compactor_step(struct compactor *compactor, size_t enough)
{
	struct log_position position;
	int more;

	if (compactor->log->count < 2 || !compactor_may_work(compactor))
		return false;
	more = compactor_collect(compactor, enough);
	if (more < 0)
		return compactor_give_up(compactor);
	if (compactor->used > 0) {
		if (log_append(compactor->log, compactor->buffer, compactor->used, 0, &position) <
		    0)
			return compactor_give_up(compactor);
		compactor_move_tasks(compactor, &position);
	}
	return more > 0 || compactor_drop(compactor);
}

bool compactor_is_due(struct compactor *compactor)
{
	compactor->wanted = compactor->log->count > 1 && compactor_is_over(compactor, 3);
	return compactor->wanted && compactor_may_work(compactor);
}

bool compactor_work(struct compactor *compactor, size_t batch_bytes, bool early)
{
	size_t enough = 2 * batch_bytes + STEP_BYTES / 2;
	bool worked = false;

	if (enough > compactor_most(compactor))
		enough = compactor_most(compactor);
	if (early && compactor_is_due(compactor))
		worked = compactor_step(compactor, enough);
	while (compactor_is_over(compactor, 4) && compactor_step(compactor, enough))
		worked = true;
	return worked;
}
