/* SPDX-License-Identifier: MIT */
/*
 * See replay.h. What makes a torn end different from damage: every record says up to where the log
 * was stable when it was written. If a record behind the bad place says that the bad place had been
 * stable, acknowledged facts are damaged, and we refuse. If none does, the bad place is where a
 * crash interrupted writes that nobody was told of, and it is the end. All segments but the last
 * were stable before the next was begun: there is nothing torn in them, and nothing ahead.
 *
 * Zeros written ahead are judged like anything torn: they are the end only if nothing behind them
 * says that there was something in their place.
 */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* Salvage: how many ids may have been given out in records that are lost. */
#define IDS_LOST_MAX (UINT64_C(1) << 20)
#define NAME_DIGITS 16
/* Empty. It is there since the first segment is: a directory without any has lost them. */
#define BEGUN_NAME "begun"
#define WRITE_AGAIN_BYTES 4096

static int faulty(struct replay *replay, const struct reader *reader, int result, const char *what)
{
	replay->fault = what;
	replay->fault_segment = reader->header.number;
	replay->fault_offset = reader->offset;
	return result;
}

/* ---- which segments there are ---- */

/* Is this the name of a segment? */
static bool parse_name(const char *name, uint64_t *ret_number)
{
	char expected[DISK_NAME_MAX];
	char *end;

	if (strlen(name) != NAME_DIGITS + 4)
		return false;
	*ret_number = strtoull(name, &end, 16);
	segment_name(expected, *ret_number);
	return strcmp(name, expected) == 0;
}

static int found_name(void *context, const char *name)
{
	struct replay *replay = context;
	uint64_t number;

	replay->has_begun = replay->has_begun || strcmp(name, BEGUN_NAME) == 0;
	return parse_name(name, &number) ? log_add_segment(&replay->log, number, 0) : 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t left = ((const struct segment *)a)->number;
	uint64_t right = ((const struct segment *)b)->number;

	return left < right ? -1 : left > right;
}

static void forget_before(struct log *log, uint64_t oldest)
{
	uint32_t gone = 0;

	while (gone < log->count && log->segments[gone].number < oldest)
		gone++;
	log->count -= gone;
	memmove(log->segments, log->segments + gone, log->count * sizeof(*log->segments));
}

/* The last segment's header says which ones count. In salvage, if it is readable. */
static int find_oldest(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;
	uint64_t number = log_last(log)->number;
	struct reader reader;
	int result = reader_open(&reader, log->disk, number, false);

	if (result == 0) {
		replay->oldest = reader.header.oldest;
		replay->leftovers = log->count;
		forget_before(log, reader.header.oldest);
		replay->leftovers -= log->count;
	} else if (result == -EBADMSG || result == -EOPNOTSUPP) {
		reader.header.number = number;
		reader.offset = 0;
		result = faulty(replay, &reader, result, "no good header");
		if (mode == REPLAY_SALVAGE)
			result = 0;
	}
	reader_close(&reader);
	return result;
}

static int refuse_gap(struct replay *replay, uint64_t number, const char *what)
{
	replay->fault = what;
	replay->fault_segment = number;
	replay->fault_offset = 0;
	return -EBADMSG;
}

static int find_segments(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;
	int result = log->disk->ops->list(log->disk, found_name, replay);

	if (result < 0)
		return result;
	if (log->count == 0)
		return replay->has_begun && mode != REPLAY_SALVAGE
		               ? refuse_gap(replay, 1, "all segments are missing")
		               : 0;
	qsort(log->segments, log->count, sizeof(*log->segments), compare_numbers);
	return find_oldest(replay, mode);
}

/* ---- what the records say ---- */

/* 0 or -ENOMEM. Room for one more task, in tables that grow by doubling. */
static int make_room(struct replay *replay)
{
	int result = tasks_reserve(&replay->tasks, replay->tasks.count + 1);

	return result == 0 ? agenda_reserve(&replay->agenda, replay->tasks.count + 1) : result;
}

static void remove_task(struct replay *replay, struct task *task)
{
	(void)agenda_remove(&replay->agenda, task);
	tasks_remove(&replay->tasks, task);
}

static uint32_t saturated(uint64_t attempts)
{
	return attempts < UINT32_MAX ? (uint32_t)attempts : UINT32_MAX;
}

static int replay_put(struct replay *replay, const struct record *record,
                      const struct log_place *place)
{
	struct task *old = tasks_find(&replay->tasks, record->id);
	struct task *task = task_new(record->due_ns, record->data, record->data_len);
	int result = task ? make_room(replay) : -ENOMEM;

	if (result < 0) {
		free(task);
		return result;
	}
	if (old)
		remove_task(replay,
		            old); /* compaction copied it, and could not drop the original */
	task->id = record->id;
	task->attempts = saturated(record->attempts);
	task->segment = (uint32_t)place->segment;
	task->offset8 = (uint32_t)(place->offset / RECORD_ALIGN_BYTES);
	tasks_insert(&replay->tasks, task);
	agenda_insert(&replay->agenda, task, task->due_ns);
	return 0;
}

static void replay_due(struct replay *replay, struct task *task, uint64_t due_ns)
{
	(void)agenda_remove(&replay->agenda, task);
	task->due_ns = due_ns;
	agenda_insert(&replay->agenda, task, due_ns);
}

/* `stable` goes up with the first record behind what it says; so the doubt begins with that one. */
static void note_doubt(struct replay *replay, const struct record *record, uint64_t offset)
{
	if (record->stable <= replay->vouched)
		return;
	replay->vouched = record->stable;
	if (record->sequence == record->stable + 1)
		replay->doubt_offset = offset;
}

/* A record of a task not known is about one whose end is known, and its beginning dropped. */
static int replay_record(struct replay *replay, const struct record *record,
                         const struct log_place *place)
{
	struct task *task;

	replay->records++;
	note_doubt(replay, record, place->offset);
	if (record->type == RECORD_DROP) {
		replay->oldest = record->id > replay->oldest ? record->id : replay->oldest;
		return 0;
	}
	if (record->id >= replay->log.next_id)
		replay->log.next_id = record->id + 1;
	if (record->type == RECORD_PUT || record->type == RECORD_COPY)
		return replay_put(replay, record, place);
	task = tasks_find(&replay->tasks, record->id);
	if (!task)
		return 0;
	if (record->type == RECORD_MOVE || record->type == RECORD_RETRY)
		replay_due(replay, task, record->due_ns);
	else if (record->type == RECORD_TAKE)
		task->attempts = saturated(record->attempts);
	else if (record->type == RECORD_CANCEL || record->type == RECORD_DONE)
		remove_task(replay, task);
	return 0;
}

/* ---- a segment ---- */

/*
 * There is no record with the expected sequence here. In the last segment that may be where a crash
 * tore it: 0 then, and the segment ends here.
 */
static int judge(struct replay *replay, struct reader *reader, bool last)
{
	uint64_t expected = replay->log.sequence + 1;
	uint64_t at = reader->offset;
	int result = 1;

	if (last) {
		/* One step back, so that a good record out of order is asked too. */
		reader->offset -= RECORD_ALIGN_BYTES;
		result = reader_search(reader, expected, expected);
		reader->offset = at;
	}
	if (result <= 0)
		return result;
	return faulty(replay, reader, -EBADMSG, "a damaged record, with good ones behind it");
}

static bool is_last(const struct replay *replay, const struct reader *reader)
{
	return reader->header.number == replay->log.segments[replay->log.count - 1].number;
}

/* Salvage: where does what is bad here end? 1: at a good record; 0: at zeros ahead, or the end. */
static int find_end_of_bad(struct replay *replay, struct reader *reader, uint64_t *ret_end)
{
	uint64_t from = reader->offset;
	int result = reader_search(reader, replay->log.sequence + 1, 0);

	*ret_end = result == 1 ? reader->offset : reader->end;
	reader->offset = from;
	if (result == 0 && is_last(replay, reader))
		result = reader_find_zeros(reader, ret_end);
	return result;
}

/* Salvage: on to the next good record, whatever was before it. 1; 0: there is none. */
static int skip(struct replay *replay, struct reader *reader)
{
	uint64_t end;
	int result = find_end_of_bad(replay, reader, &end);

	if (result < 0)
		return result;
	if (end > reader->offset && !replay->fault)
		(void)faulty(replay, reader, 0, "a damaged record");
	replay->lost_bytes += end - reader->offset;
	reader->offset = result == 1 ? end : reader->end;
	return result;
}

/* Ends at the first record that is not good, reader->offset before it. 0 or an error. */
static int replay_records(struct replay *replay, struct reader *reader, enum replay_mode mode)
{
	for (;;) {
		struct log_place place = { reader->header.number, reader->offset };
		struct record record;
		int result = reader_next(reader, &record);

		if (result == 0)
			return 0;
		if (result == 1 &&
		    (record.sequence == replay->log.sequence + 1 ||
		     (mode == REPLAY_SALVAGE && record.sequence > replay->log.sequence))) {
			replay->log.sequence = record.sequence;
			result = replay_record(replay, &record, &place);
			if (result < 0)
				return result;
			continue;
		}
		reader->offset = place.offset;
		if (result < 0 && result != -EBADMSG)
			return result;
		if (mode != REPLAY_SALVAGE)
			return 0;
		result = skip(replay, reader);
		if (result <= 0)
			return result;
	}
}

/* Does the segment follow the one before it? */
static int check_header(struct replay *replay, const struct reader *reader, enum replay_mode mode)
{
	struct log *log = &replay->log;
	uint64_t first = reader->header.first_sequence;

	if (log->sequence == 0 || (mode == REPLAY_SALVAGE && first > log->sequence))
		log->sequence = first - 1;
	else if (first != log->sequence + 1 && mode != REPLAY_SALVAGE)
		return faulty(replay, reader, -EBADMSG, "records before it are missing");
	if (reader->header.next_id > log->next_id)
		log->next_id = reader->header.next_id;
	return 0;
}

/*
 * What is torn is cut, so that what comes next follows the last good record; and zeros too: whether
 * they are on the disk nobody knows, and behind the next records there must not be what was there
 * before.
 */
static int cut(struct reader *reader)
{
	if (reader->offset == reader->end)
		return 0;
	return reader->disk->ops->truncate(reader->disk, reader->file, reader->offset);
}

/*
 * Write again what nobody vouches for. A sync may have failed before, and after that what is read
 * need not be on the disk, nor will the next sync write it.
 */
static int write_again(struct replay *replay, struct reader *reader)
{
	const struct disk_ops *ops = reader->disk->ops;
	uint8_t bytes[WRITE_AGAIN_BYTES];
	uint64_t at = replay->doubt_offset;

	while (at < reader->offset) {
		uint64_t left = reader->offset - at;
		size_t want = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		int64_t done = ops->read(reader->disk, reader->file, bytes, want, at);

		if (done > 0)
			done = ops->write(reader->disk, reader->file, bytes, (size_t)done, at);
		if (done <= 0)
			return done < 0 ? (int)done : -EIO;
		at += (uint64_t)done;
	}
	return 0;
}

/* The last segment becomes the log's file. What it holds may not have been synced so far. */
static int adopt(struct replay *replay, struct reader *reader)
{
	struct log *log = &replay->log;
	int result = cut(reader);

	if (result == 0)
		result = write_again(replay, reader);
	if (result < 0)
		return result;
	log->salt = reader->header.salt;
	log->file = reader_release(reader);
	result = log->disk->ops->sync(log->disk, log->file);
	if (result == 0)
		result = log->disk->ops->sync_dir(log->disk);
	log->stable = log->sequence;
	return result;
}

/* Of what is behind the last good record, which is torn, and what was written ahead of it? */
static int measure_end(struct replay *replay, struct reader *reader)
{
	uint64_t zeros_from;
	int result = reader_find_zeros(reader, &zeros_from);

	if (result < 0)
		return result;
	replay->torn_bytes = zeros_from - reader->offset;
	replay->ahead_bytes = reader->end - zeros_from;
	return 0;
}

static int replay_reader(struct replay *replay, struct reader *reader, struct segment *segment,
                         enum replay_mode mode)
{
	bool last = is_last(replay, reader);
	int result = check_header(replay, reader, mode);

	replay->doubt_offset = SEGMENT_HEADER_BYTES;
	if (result == 0)
		result = replay_records(replay, reader, mode);
	if (result == 0 && reader->offset < reader->end)
		result = judge(replay, reader, last);
	if (result < 0)
		return result;
	segment->bytes = reader->offset;
	replay->log.bytes += segment->bytes;
	if (!last)
		return 0;
	if (!replay->fault)
		(void)faulty(replay, reader, 0, NULL);
	result = measure_end(replay, reader);
	return result == 0 && mode == REPLAY_OPEN ? adopt(replay, reader) : result;
}

static int replay_segment(struct replay *replay, struct segment *segment, enum replay_mode mode)
{
	struct reader reader;
	int result = reader_open(&reader, replay->log.disk, segment->number, mode == REPLAY_OPEN);

	if (result == 0) {
		result = replay_reader(replay, &reader, segment, mode);
	} else if (result == -EBADMSG || result == -EOPNOTSUPP) {
		reader.header.number = segment->number;
		if (!replay->fault)
			(void)faulty(replay, &reader, 0, "no good header");
		replay->lost_bytes += reader.end;
		if (mode == REPLAY_SALVAGE)
			result = 0;
	}
	reader_close(&reader);
	return result;
}

/* ---- all of it ---- */

/* Is every segment that counts there, from the first one on? */
static int check_first(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;

	if (log->count == 0 || mode == REPLAY_SALVAGE || log->segments[0].number <= replay->oldest)
		return 0;
	return refuse_gap(replay, log->segments[0].number, "the segments before it are missing");
}

static int replay_segments(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;

	for (uint32_t i = 0; i < log->count; i++) {
		uint64_t number = log->segments[i].number;
		int result;

		if (i > 0 && number != log->segments[i - 1].number + 1 && mode != REPLAY_SALVAGE)
			return refuse_gap(replay, number, "the segment before it is missing");
		result = replay_segment(replay, &log->segments[i], mode);
		if (result < 0)
			return result;
	}
	return check_first(replay, mode);
}

struct leftovers {
	struct disk *disk;
	uint64_t oldest;
};

static int remove_leftover(void *context, const char *name)
{
	struct leftovers *leftovers = context;
	const char *dot = strrchr(name, '.');
	uint64_t number;

	if ((dot && strcmp(dot, ".new") == 0) ||
	    (parse_name(name, &number) && number < leftovers->oldest))
		return leftovers->disk->ops->unlink(leftovers->disk, name);
	return 0;
}

/* What an unfinished rotation, or repair, has left behind. */
static int clean_up(struct replay *replay)
{
	struct leftovers leftovers = {
		.disk = replay->log.disk,
		.oldest = replay->log.segments[0].number,
	};

	return leftovers.disk->ops->list(leftovers.disk, remove_leftover, &leftovers);
}

/* The first segment's name is stable before this one is; so if this is there, that was. */
static int note_begin(struct replay *replay)
{
	struct disk *disk = replay->log.disk;
	int file;

	if (replay->has_begun)
		return 0;
	file = disk->ops->create(disk, BEGUN_NAME);
	if (file < 0)
		return file;
	disk->ops->close(disk, file);
	return disk->ops->sync_dir(disk);
}

int replay_run(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;
	int result;

	log->file = -1;
	log->next_id = 1;
	result = find_segments(replay, mode);
	if (result == 0)
		result = replay_segments(replay, mode);
	if (result == 0 && mode == REPLAY_SALVAGE)
		log->next_id += IDS_LOST_MAX;
	if (result < 0 || mode != REPLAY_OPEN)
		return result;
	if (log->count == 0)
		result = log_begin_segment(log, 1, 1);
	if (result == 0)
		result = note_begin(replay);
	return result == 0 ? clean_up(replay) : result;
}

void replay_fini(struct replay *replay)
{
	log_close(&replay->log);
	tasks_fini(&replay->tasks);
	agenda_fini(&replay->agenda);
}
