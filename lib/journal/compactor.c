/* SPDX-License-Identifier: MIT */
/*
 * The leader compacts after a batch, while tasks are delivered. The record that ends a task is
 * behind the one that put it, so only live tasks with data in the first segment are copied.
 */
#include "journal/compactor.h"

#include <errno.h>
#include <stdlib.h>

#include "journal/log_append.h"

#define STEP_BYTES ((size_t)64 << 10)
/* written for each dropped segment beside copies: two headers and a DROP record */
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
 * Must a round begin? The files exceed `halves` times half the live bytes plus a segment, and the
 * round frees a quarter of a segment at least: else rounds would follow without end where the spare
 * alone exceeds the limit. A round over N segments writes the live records, N DROP records, and
 * 2N+1 headers at most.
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
 * To the buffer. Only the leader ends a task or changes its place on disk, so it stays live; the
 * lock protects the other fields. -ENOSPC: the buffered copies fill a segment, and must be written
 * first; or -ENOMEM.
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

/* The live task whose place on disk is this record, or NULL. */
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

/* Until the buffer has `enough` bytes. 1: perhaps more; 0: the segment's end. */
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

/* With data in the first segment, behind `after` (NULL: from the beginning); or NULL. */
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
 * By a scan of the table of ids, without reading the segment. A bucket that does not fit is scanned
 * again by the next step.
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

		/* it cannot fail: log_append() has just sealed the record */
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

/* After its DROP record is stable, which may use the spare room of a full disk. */
static bool compactor_drop(struct compactor *compactor)
{
	struct log *log = compactor->log;
	struct record record = { .type = RECORD_DROP, .id = log->segments[1].number };
	uint8_t bytes[RECORD_HEADER_BYTES];
	bool unreadable = compactor->state == COMPACTOR_SCANS;
	struct log_position position;

	compactor_end_round(compactor);
	record_encode(bytes, &record);
	if (log_append(log, bytes, sizeof(bytes), LOG_SYNC | LOG_SPARE, &position) < 0 ||
	    log_drop_first(log) < 0)
		return compactor_give_up(compactor);
	compactor->dropped++;
	compactor->healed += unreadable;
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
	/* at the end of the good records: a refused write may have left bytes behind */
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
		 * unreadable; what was collected is written before the scan, so that nothing is
		 * copied twice
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
 * Copies about `enough` bytes, and drops the segment when all is copied. False: nothing to do, or
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
