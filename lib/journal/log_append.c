/* SPDX-License-Identifier: MIT */
/* To the last segment, with a sync, over zeros written before. */
#include "journal/log_append.h"

#include <errno.h>

#include "journal/record.h"
#include "journal/watermark.h"

#define ZEROS_BYTES ((size_t)64 << 10)
/*
 * The spare shrinks by such steps, and is one larger than the records that will end tasks: file
 * systems allocate blocks.
 */
#define SPARE_STEP_BYTES (UINT64_C(64) << 10)

static const uint8_t log_zeros[ZEROS_BYTES];

bool log_is_full(int result)
{
	return result == -ENOSPC || result == -EDQUOT;
}

/*
 * Can the log go on? Lack of room, memory or descriptors, or a read-only file system, is returned;
 * any other error fails the log, with -EIO.
 */
static int log_answer(struct log *log, int result)
{
	switch (result) {
	case 0:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
	case -EROFS:
		return result;
	default:
		return log_fail(log);
	}
}

/* ---- zeros ahead ---- */

/* Cut the zeros off the last segment, without a sync. Returns 0 or an error. */
static int log_cut_ahead(struct log *log)
{
	int result = log->disk->ops->truncate(log->disk, log->file, log_last(log)->bytes);

	if (result < 0)
		return result;
	log->bytes -= log->ahead;
	log->ahead = 0;
	return 0;
}

static int log_write_zeros(struct log *log, uint64_t from, uint64_t to)
{
	int result = 0;

	while (result == 0 && from < to) {
		size_t count = to - from < ZEROS_BYTES ? (size_t)(to - from) : ZEROS_BYTES;

		result = log_write_all(log, log->file, log_zeros, count, from);
		from += count;
	}
	return result;
}

/*
 * More zeros if the next `bytes` do not fit; the records' sync makes them stable, so nobody waits
 * for one of zeros. Refused ones are cut off, and written again some records later. Without room
 * the records' own write fails.
 */
static void log_stretch(struct log *log, size_t bytes)
{
	uint64_t from = log_last(log)->bytes + log->ahead;
	uint64_t end = log_last(log)->bytes + bytes;
	uint64_t to;

	if (log->stretch_bytes == 0 || end <= from || end < log->plain_to)
		return;
	to = (end / log->stretch_bytes + 1) * log->stretch_bytes;
	if (to > log->segment_bytes)
		to = log->segment_bytes;
	if (to <= from)
		return;
	log->ahead += to - from;
	log->bytes += to - from;
	if (log_write_zeros(log, from, to) == 0)
		return;
	log->plain_to = to;
	/*
	 * if that fails too, there are fewer zeros than log->ahead, and records make the file grow
	 */
	(void)log_cut_ahead(log);
}

/* ---- append ---- */

static int log_sync_now(struct log *log)
{
	if (log->disk->ops->sync(log->disk, log->file) < 0)
		return log_fail(log);
	log->stable = log->sequence;
	return 0;
}

/*
 * Makes the last segment stable, without zeros: recovery refuses bytes behind the records of any
 * but the last.
 */
static int log_rotate(struct log *log)
{
	int result = log_trim(log);

	if (result < 0)
		return result;
	return log_begin_segment(log, log_last(log)->number + 1, log->segments[0].number);
}

/* With salt, sequence and checksum. Returns the number of records. */
static uint64_t log_seal(const struct log *log, uint8_t *records, size_t bytes)
{
	uint64_t sequence = log->sequence;

	for (size_t at = 0; at < bytes;)
		at += record_seal(records + at, log->salt, ++sequence, log->stable);
	return sequence - log->sequence;
}

/*
 * And syncs the cut; `refusal`, or -EIO. A refused put that stayed could be delivered after a
 * crash.
 */
static int log_cut_back(struct log *log, int refusal)
{
	/* with the zeros, whose room a copy-on-write file system may need */
	log->plain_to = log_last(log)->bytes + log->stretch_bytes;
	if (log_cut_ahead(log) < 0 || log_sync_now(log) < 0)
		return log_fail(log);
	return refusal;
}

static int log_write_out(struct log *log, const uint8_t *bytes, size_t count, uint64_t offset,
                         bool sync)
{
	int result = log_write_all(log, log->file, bytes, count, offset);

	if (result < 0)
		return log_cut_back(log, result);
	if (sync && log->disk->ops->sync(log->disk, log->file) < 0)
		return log_fail(log);
	return 0;
}

/* They may have overwritten zeros. */
static void log_note_written(struct log *log, size_t bytes)
{
	uint64_t over = bytes < log->ahead ? bytes : log->ahead;

	log_last(log)->bytes += bytes;
	log->ahead -= over;
	log->bytes += bytes - over;
}

/* With the watermark; if its write fails, the old one stays correct. */
static int log_note_stable(struct log *log)
{
	log->stable = log->sequence;
	log->syncs++;
	if (log->disk->ops->check(log->disk, log->file) < 0)
		return log_fail(log);
	if (log->watermark >= 0)
		(void)watermark_write(log->disk, log->watermark, log->stable);
	return 0;
}

static bool log_must_rotate(struct log *log, size_t bytes)
{
	const struct segment *last = log_last(log);

	return last->bytes + bytes > log->segment_bytes && last->bytes > SEGMENT_HEADER_BYTES;
}

static int log_append_once(struct log *log, uint8_t *records, size_t bytes, bool sync,
                           struct log_position *ret_position)
{
	struct segment *last = log_last(log);
	uint64_t count;
	int result = log->failed;

	if (result == 0 && log_must_rotate(log, bytes))
		result = log_rotate(log);
	if (result < 0)
		return result;
	last = log_last(log);
	log_stretch(log, bytes);
	count = log_seal(log, records, bytes);
	if (log->sequence + count >= RECORD_NUMBER_END)
		return log_fail(log);
	result = log_write_out(log, records, bytes, last->bytes, sync);
	if (result < 0)
		return result;
	*ret_position = (struct log_position){ .segment = last->number, .offset = last->bytes };
	log_note_written(log, bytes);
	log->sequence += count;
	return sync ? log_note_stable(log) : 0;
}

int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position)
{
	for (;;) {
		int result =
			log_append_once(log, records, bytes, (how & LOG_SYNC) != 0, ret_position);
		uint64_t room = bytes > SPARE_STEP_BYTES ? bytes : SPARE_STEP_BYTES;

		if (!log_is_full(result) || (how & LOG_SPARE) == 0 ||
		    !disk_reserve_give(&log->spare, room))
			return log_answer(log, result);
	}
}

static uint64_t log_spare_step(const struct log *log)
{
	uint64_t most = log->segment_bytes / 8;

	return most < SPARE_STEP_BYTES ? most : SPARE_STEP_BYTES;
}

int log_reserve(struct log *log, uint64_t bytes)
{
	uint64_t step = log_spare_step(log);

	bytes = bytes > 0 ? bytes + step : 0;
	return log_answer(log, disk_reserve_grow(&log->spare, bytes, bytes + bytes / 4 + step));
}

/* To somewhat more than `bytes`: else each put after an end would write zeros again. */
void log_release(struct log *log, uint64_t bytes)
{
	uint64_t step = log_spare_step(log);

	bytes += bytes / 4 + 3 * step;
	if (log->failed == 0 && log->spare.bytes > bytes + bytes / 4 + step)
		(void)disk_reserve_give(&log->spare, log->spare.bytes - bytes);
}

int log_sync(struct log *log)
{
	if (log->failed < 0)
		return log->failed;
	return log->stable == log->sequence ? 0 : log_sync_now(log);
}

/* If it fails, an older one stays valid. */
static void log_sync_watermark(struct log *log)
{
	if (log->watermark >= 0 && watermark_write(log->disk, log->watermark, log->stable) == 0)
		(void)log->disk->ops->sync(log->disk, log->watermark);
}

int log_trim(struct log *log)
{
	int result = log->failed;

	if (result == 0 && log->ahead > 0) {
		result = log_cut_ahead(log);
		if (result == 0)
			result = log_sync_now(log);
	} else if (result == 0) {
		result = log_sync(log);
	}
	if (result == 0)
		log_sync_watermark(log);
	return result;
}
