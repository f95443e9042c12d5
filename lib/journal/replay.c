/* SPDX-License-Identifier: MIT */
/*
 * Reads the segments of segment_names.c, gives each record to redo.c, and asks torn_tail.c where
 * one is missing. timerhub_journal_open() refuses a damaged journal.
 */
#include "journal/replay.h"

#include <errno.h>

#include "journal/reader.h"
#include "journal/redo.h"
#include "journal/segment_names.h"
#include "journal/torn_tail.h"
#include "journal/watermark.h"

/* Number of ids that salvage skips, because lost records may have used these ids. */
#define IDS_LOST_MAX (UINT64_C(1) << 20)
/*
 * reads before REPLAY_VERIFY reports a fault, since another process may change the journal
 * meanwhile
 */
#define LOOKS_MAX 100

static int replay_fault_at(struct replay *replay, uint64_t segment, uint64_t offset, int result,
                           const char *what)
{
	replay->fault = what;
	replay->fault_segment = segment;
	replay->fault_offset = offset;
	return result;
}

static int replay_faulty(struct replay *replay, const struct reader *reader, int result,
                         const char *what)
{
	return replay_fault_at(replay, reader->header.number, reader->offset, result, what);
}

/* ---- which segments there are ---- */

/* From the last segment's header, which salvage may not be able to read. */
static int replay_find_oldest(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;
	uint64_t number = log_last(log)->number;
	struct reader reader;
	int result = reader_open(&reader, log->disk, number, false, mode == REPLAY_SALVAGE);

	if (result == 0) {
		replay->oldest = reader.header.oldest;
		replay->leftovers = log->count;
		segment_names_forget_before(log, reader.header.oldest);
		replay->leftovers -= log->count;
	} else if (result == -EBADMSG || result == -EOPNOTSUPP) {
		result = replay_fault_at(replay, number, 0, result, "no good header");
		if (mode == REPLAY_SALVAGE)
			result = 0;
	}
	reader_close(&reader);
	return result;
}

static int replay_find_segments(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;
	/* before the segments: another process may be writing both */
	int result = watermark_read(log->disk, &replay->has_watermark, &replay->watermark);

	if (result == 0)
		result = segment_names_list(log);
	if (result < 0)
		return result;
	if (log->count == 0)
		return replay->has_watermark && mode != REPLAY_SALVAGE
		               ? replay_fault_at(replay, 1, 0, -EBADMSG, "all segments are missing")
		               : 0;
	return replay_find_oldest(replay, mode);
}

/* ---- what the records say ---- */

/*
 * Before doubt_offset all records of the segment are stable: so are all before a record N whose
 * `stable` is N-1.
 */
static void replay_note_doubt(struct replay *replay, const struct record *record, uint64_t offset)
{
	if (record->stable <= replay->vouched)
		return;
	replay->vouched = record->stable;
	if (record->sequence == record->stable + 1)
		replay->doubt_offset = offset;
}

static int replay_record(struct replay *replay, const struct record *record,
                         const struct log_position *position)
{
	replay->records++;
	replay_note_doubt(replay, record, position->offset);
	if (record->type == RECORD_DROP) {
		replay->oldest = record->id > replay->oldest ? record->id : replay->oldest;
		return 0;
	}
	if (record->id >= replay->log.next_id)
		replay->log.next_id = record->id + 1;
	return redo_record(&replay->tasks, &replay->agenda, record, position);
}

/* ---- a segment ---- */

static int replay_judge(struct replay *replay, struct reader *reader, bool last)
{
	const char *fault = NULL;
	int result = torn_tail_judge(reader, replay->log.sequence + 1, last, &fault);

	return result == -EBADMSG ? replay_faulty(replay, reader, result, fault) : result;
}

static bool replay_is_last(const struct replay *replay, const struct reader *reader)
{
	return reader->header.number == replay->log.segments[replay->log.count - 1].number;
}

/* For salvage. 1: a good record follows; 0: only zeros or the end. */
static int replay_find_end_of_bad(struct replay *replay, struct reader *reader, uint64_t *ret_end)
{
	uint64_t from = reader->offset;
	int result = reader_search(reader, replay->log.sequence + 1, 0);

	*ret_end = result == 1 ? reader->offset : reader->end;
	reader->offset = from;
	if (result == 0 && replay_is_last(replay, reader))
		result = reader_find_zeros(reader, ret_end);
	return result;
}

/* In salvage, to the next good record: 1; 0: none; or a disk's error. */
static int replay_skip(struct replay *replay, struct reader *reader)
{
	uint64_t end;
	int result = replay_find_end_of_bad(replay, reader, &end);

	if (result < 0)
		return result;
	if (end > reader->offset && !replay->fault)
		(void)replay_faulty(replay, reader, 0, "a damaged record");
	replay->lost_bytes += end - reader->offset;
	reader->offset = result == 1 ? end : reader->end;
	return result;
}

/*
 * 1 if the transaction that `first` begins is whole (in salvage every record is one), 0, or a
 * disk's error; moves to its end, or to where it breaks off.
 */
static int replay_is_whole(struct replay *replay, struct reader *reader, const struct record *first,
                           enum replay_mode mode)
{
	struct record record = *first;
	int result = 1;

	if (first->sequence <= replay->whole_to || mode == REPLAY_SALVAGE)
		return 1;
	while ((record.flags & RECORD_MORE) != 0) {
		uint64_t sequence = record.sequence + 1;

		result = reader_next(reader, &record);
		if (result < 0 && result != -EBADMSG)
			return result;
		if (result <= 0 || record.sequence != sequence)
			return 0;
	}
	replay->whole_to = record.sequence;
	return result;
}

/* May its sequence number follow the last one's? */
static bool replay_is_next(const struct replay *replay, const struct record *record,
                           enum replay_mode mode)
{
	uint64_t last = replay->log.sequence;

	return mode == REPLAY_SALVAGE ? record->sequence > last : record->sequence == last + 1;
}

/* 1, 0 at the segment's end, a disk's error, or -EBADMSG: bad, or of an incomplete transaction. */
static int replay_next(struct replay *replay, struct reader *reader, enum replay_mode mode,
                       struct record *ret_record)
{
	uint64_t offset = reader->offset;
	int result = reader_next(reader, ret_record);

	if (result <= 0)
		return result;
	if (!replay_is_next(replay, ret_record, mode))
		return -EBADMSG;
	if ((ret_record->flags & RECORD_MORE) == 0)
		return 1;
	result = replay_is_whole(replay, reader, ret_record, mode);
	if (result <= 0)
		return result < 0 ? result : -EBADMSG;
	/* again: replay_is_whole() has changed the buffer */
	reader->offset = offset;
	return reader_next(reader, ret_record);
}

/* Up to the first that is not good, where reader->offset stays. */
static int replay_records(struct replay *replay, struct reader *reader, enum replay_mode mode)
{
	for (;;) {
		struct log_position position = { reader->header.number, reader->offset };
		struct record record;
		int result = replay_next(replay, reader, mode, &record);

		if (result == 0)
			return 0;
		if (result == 1) {
			replay->log.sequence = record.sequence;
			result = replay_record(replay, &record, &position);
			if (result < 0)
				return result;
			continue;
		}
		reader->offset = position.offset;
		if (result != -EBADMSG)
			return result;
		if (mode != REPLAY_SALVAGE)
			return 0;
		result = replay_skip(replay, reader);
		if (result <= 0)
			return result;
	}
}

/* Does it continue the previous segment? */
static int replay_check_header(struct replay *replay, const struct reader *reader,
                               enum replay_mode mode)
{
	struct log *log = &replay->log;
	uint64_t first = reader->header.first_sequence;

	if (log->sequence == 0 || (mode == REPLAY_SALVAGE && first > log->sequence))
		log->sequence = first - 1;
	else if (first != log->sequence + 1 && mode != REPLAY_SALVAGE)
		return replay_faulty(replay, reader, -EBADMSG, "records before it are missing");
	if (reader->header.next_id > log->next_id)
		log->next_id = reader->header.next_id;
	return 0;
}

/* Torn bytes behind the last good record, then zeros. */
static int replay_measure_end(struct replay *replay, struct reader *reader)
{
	uint64_t zeros_from = 0;
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
	bool last = replay_is_last(replay, reader);
	int result = replay_check_header(replay, reader, mode);

	replay->doubt_offset = SEGMENT_HEADER_BYTES;
	if (result == 0)
		result = replay_records(replay, reader, mode);
	if (result == 0 && reader->offset < reader->end)
		result = replay_judge(replay, reader, last);
	if (result == 0 && last && mode != REPLAY_SALVAGE &&
	    replay->log.sequence < replay->watermark)
		result = replay_faulty(replay, reader, -EBADMSG,
		                       "the log ends before what was acknowledged");
	if (result < 0)
		return result;
	segment->bytes = reader->offset;
	replay->log.bytes += segment->bytes;
	if (!last)
		return 0;
	if (!replay->fault)
		(void)replay_faulty(replay, reader, 0, NULL);
	result = replay_measure_end(replay, reader);
	return result == 0 && mode == REPLAY_OPEN
	               ? torn_tail_cut(&replay->log, reader, replay->doubt_offset)
	               : result;
}

/* In salvage its header is derived from its records. */
static int replay_headless(struct replay *replay, struct reader *reader, struct segment *segment,
                           enum replay_mode mode, int refusal)
{
	int result;

	if (!replay->fault)
		(void)replay_fault_at(replay, segment->number, 0, 0, "no good header");
	if (mode != REPLAY_SALVAGE)
		return refusal;
	result = reader_guess_header(reader, segment->number);
	if (result == 1) {
		replay->lost_bytes += SEGMENT_HEADER_BYTES;
		return replay_reader(replay, reader, segment, mode);
	}
	replay->lost_bytes += reader->end;
	return result;
}

static int replay_segment(struct replay *replay, struct segment *segment, enum replay_mode mode)
{
	struct reader reader;
	int result = reader_open(&reader, replay->log.disk, segment->number, mode == REPLAY_OPEN,
	                         mode == REPLAY_SALVAGE);

	if (result == 0)
		result = replay_reader(replay, &reader, segment, mode);
	else if (reader.file >= 0 && (result == -EBADMSG || result == -EOPNOTSUPP))
		result = replay_headless(replay, &reader, segment, mode, result);
	reader_close(&reader);
	return result;
}

/* ---- all of it ---- */

/* Is the oldest there? */
static int replay_check_first(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;

	if (log->count == 0 || mode == REPLAY_SALVAGE || log->segments[0].number <= replay->oldest)
		return 0;
	return replay_fault_at(replay, log->segments[0].number, 0, -EBADMSG,
	                       "the segments before it are missing");
}

static int replay_segments(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;

	for (uint32_t i = 0; i < log->count; i++) {
		uint64_t number = log->segments[i].number;
		int result;

		if (i > 0 && number != log->segments[i - 1].number + 1 && mode != REPLAY_SALVAGE)
			return replay_fault_at(replay, number, 0, -EBADMSG,
			                       "the segment before it is missing");
		result = replay_segment(replay, &log->segments[i], mode);
		if (result < 0)
			return result;
	}
	return replay_check_first(replay, mode);
}

/* Watermark, spare, leftover files; the first segment if there is none. */
static int replay_complete(struct replay *replay)
{
	struct log *log = &replay->log;
	int result = 0;

	if (log->count == 0)
		result = log_begin_segment(log, 1, 1);
	if (result == 0)
		result = watermark_open(log->disk, replay->has_watermark, log->sequence);
	if (result >= 0) {
		log->watermark = result;
		result = disk_reserve_open(&log->spare, log->disk);
	}
	return result == 0 ? segment_names_clean_up(log) : result;
}

static int replay_once(struct replay *replay, enum replay_mode mode)
{
	struct log *log = &replay->log;
	int result = replay_find_segments(replay, mode);

	if (result == 0)
		result = replay_segments(replay, mode);
	if (result == 0 && mode == REPLAY_VERIFY)
		result = disk_reserve_check(log->disk);
	if (result == 0 && mode == REPLAY_SALVAGE) {
		log->next_id = log->next_id < RECORD_NUMBER_END - IDS_LOST_MAX
		                       ? log->next_id + IDS_LOST_MAX
		                       : RECORD_NUMBER_END;
		/* the next number is beyond the watermark */
		if (log->sequence < replay->watermark)
			log->sequence = replay->watermark;
	}
	return result == 0 && mode == REPLAY_OPEN ? replay_complete(replay) : result;
}

static void replay_again(struct replay *replay)
{
	struct disk *disk = replay->log.disk;
	uint64_t segment_bytes = replay->log.segment_bytes;

	replay_fini(replay);
	replay_init(replay, disk, segment_bytes);
}

/*
 * A process that has it open may drop segments, cut zeros, and overwrite zeros just read: such a
 * fault is gone when read again, damage is not.
 */
static int replay_verify(struct replay *replay)
{
	const char *fault = NULL;
	uint64_t segment = 0, offset = 0;
	int before = 0;

	for (unsigned i = 0;; i++) {
		int result = replay_once(replay, REPLAY_VERIFY);
		bool again = result == before && replay->fault == fault &&
		             replay->fault_segment == segment && replay->fault_offset == offset;

		if (result == 0 || result == -EOPNOTSUPP || result == -ENOMEM || i == LOOKS_MAX ||
		    (again && result != -ENOENT))
			return result;
		before = result;
		fault = replay->fault;
		segment = replay->fault_segment;
		offset = replay->fault_offset;
		replay_again(replay);
	}
}

int replay_run(struct replay *replay, enum replay_mode mode)
{
	return mode == REPLAY_VERIFY ? replay_verify(replay) : replay_once(replay, mode);
}

void replay_init(struct replay *replay, struct disk *disk, uint64_t segment_bytes)
{
	*replay = (struct replay){ .records = 0 };
	log_init(&replay->log, disk, segment_bytes);
}

void replay_fini(struct replay *replay)
{
	log_close(&replay->log);
	tasks_fini(&replay->tasks);
	agenda_fini(&replay->agenda);
}
