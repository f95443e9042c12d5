/* SPDX-License-Identifier: MIT */
/* See log.h. One thread at a time. Held to every refusal and crash of a disk by tests/journal. */
#include "log.h"

#include <errno.h>
#include <stdlib.h>

#include "reader.h"
#include "record.h"

/* A segment being made; becomes a segment by being renamed when its header is stable. */
#define NEW_NAME "segment.new"
#define ZEROS_BYTES ((size_t)64 << 10)

static const uint8_t zeros[ZEROS_BYTES];

struct segment *log_last(struct log *log)
{
	return &log->segments[log->count - 1];
}

static int fail(struct log *log)
{
	log->failed = -EIO;
	return -EIO;
}

int log_add_segment(struct log *log, uint64_t number, uint64_t bytes)
{
	if (log->count == log->capacity) {
		uint32_t capacity = log->capacity > 0 ? log->capacity * 2 : 16;
		struct segment *larger = realloc(log->segments, capacity * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		log->segments = larger;
		log->capacity = capacity;
	}
	log->segments[log->count++] = (struct segment){ .number = number, .bytes = bytes };
	log->bytes += bytes;
	return 0;
}

static int write_all(struct log *log, int file, const uint8_t *bytes, size_t count, uint64_t offset)
{
	while (count > 0) {
		int64_t written = log->disk->ops->write(log->disk, file, bytes, count, offset);

		if (written < 0)
			return (int)written;
		if (written == 0)
			return -ENOSPC;
		bytes += written;
		offset += (uint64_t)written;
		count -= (size_t)written;
	}
	return 0;
}

/* ---- zeros ahead ---- */

/* The last segment ends with its records again. 0 or an error; not synced. */
static int take_back_ahead(struct log *log)
{
	int result = log->disk->ops->truncate(log->disk, log->file, log_last(log)->bytes);

	if (result < 0)
		return result;
	log->bytes -= log->ahead;
	log->ahead = 0;
	return 0;
}

static int write_zeros(struct log *log, uint64_t from, uint64_t to)
{
	int result = 0;

	while (result == 0 && from < to) {
		size_t count = to - from < ZEROS_BYTES ? (size_t)(to - from) : ZEROS_BYTES;

		result = write_all(log, log->file, zeros, count, from);
		from += count;
	}
	return result;
}

/*
 * See to it that so many bytes of records have zeros to be written over, and some more that will
 * come. They become stable with those records. Nobody asked for them: if the disk refuses them it
 * is given back what it took, and asked again after a while. Whether there is room for the records
 * is seen when they are written.
 */
static void stretch(struct log *log, size_t bytes)
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
	if (write_zeros(log, from, to) == 0)
		return;
	log->plain_to = to;
	/* If this fails too, less is ahead than we think: then records make the file grow. */
	(void)take_back_ahead(log);
}

/* ---- a new segment ---- */

static int write_header(struct log *log, int file, const struct segment_header *header)
{
	uint8_t bytes[SEGMENT_HEADER_BYTES];
	int result;

	segment_header_encode(bytes, header);
	result = write_all(log, file, bytes, sizeof(bytes), 0);
	if (result == 0 && log->disk->ops->sync(log->disk, file) < 0)
		result = fail(log);
	return result;
}

/* The new file takes its name; from then on it is the last segment. */
static int publish(struct log *log, int file, const struct segment_header *header)
{
	const struct disk_ops *ops = log->disk->ops;
	char name[DISK_NAME_MAX];
	int result;

	segment_name(name, header->number);
	result = log_add_segment(log, header->number, SEGMENT_HEADER_BYTES);
	if (result < 0)
		return result;
	result = ops->rename(log->disk, NEW_NAME, name);
	if (result < 0) {
		log->count--;
		log->bytes -= SEGMENT_HEADER_BYTES;
		/* A name that is there after all, with records going elsewhere, would be a gap. */
		return result == -EIO ? fail(log) : result;
	}
	if (log->file >= 0)
		ops->close(log->disk, log->file);
	log->file = file;
	log->salt = header->salt;
	log->plain_to = 0;
	/* Before it is known that the name is stable nothing may be put under it. */
	return ops->sync_dir(log->disk) < 0 ? fail(log) : 0;
}

int log_begin_segment(struct log *log, uint64_t number, uint64_t oldest)
{
	const struct disk_ops *ops = log->disk->ops;
	struct segment_header header = {
		.version = FORMAT_VERSION,
		.salt = ops->random(log->disk),
		.number = number,
		.oldest = oldest,
		.first_sequence = log->sequence + 1,
		.next_id = log->next_id,
	};
	int file = ops->create(log->disk, NEW_NAME);
	int result;

	if (file < 0)
		return file;
	result = write_header(log, file, &header);
	if (result == 0)
		result = publish(log, file, &header);
	if (log->file != file) {
		ops->close(log->disk, file);
		(void)ops->unlink(log->disk, NEW_NAME); /* else the next open does it */
	}
	return result;
}

/* ---- append ---- */

static int sync_now(struct log *log)
{
	if (log->disk->ops->sync(log->disk, log->file) < 0)
		return fail(log);
	log->stable = log->sequence;
	return 0;
}

/*
 * The last segment's records must be stable before there is a next one, with nothing behind them:
 * recovery relies on it.
 */
static int rotate(struct log *log)
{
	int result = log_trim(log);

	if (result < 0)
		return result;
	return log_begin_segment(log, log_last(log)->number + 1, log->segments[0].number);
}

/* Returns how many records there are. */
static uint64_t seal(const struct log *log, uint8_t *records, size_t bytes)
{
	uint64_t sequence = log->sequence;

	for (size_t at = 0; at < bytes;)
		at += record_seal(records + at, log->salt, ++sequence, log->stable);
	return sequence - log->sequence;
}

/*
 * Take back what a refused write has left behind the last good record. Stable, too: who was told
 * that his task was refused must not see it come after a crash.
 */
static int cut_back(struct log *log, int refusal)
{
	/* A file system that never writes in place may want the room that the zeros took. */
	log->plain_to = log_last(log)->bytes + log->stretch_bytes;
	if (take_back_ahead(log) < 0 || sync_now(log) < 0)
		return fail(log);
	return refusal;
}

static int write_then_sync(struct log *log, const uint8_t *bytes, size_t count, uint64_t offset,
                           bool sync)
{
	int result = write_all(log, log->file, bytes, count, offset);

	if (result < 0)
		return cut_back(log, result);
	if (sync && log->disk->ops->sync(log->disk, log->file) < 0)
		return fail(log);
	return 0;
}

static int write_out(struct log *log, const uint8_t *bytes, size_t count, uint64_t offset,
                     bool sync)
{
	const struct disk_ops *ops = log->disk->ops;
	int synced = -ECANCELED;
	int64_t written = -EOPNOTSUPP;

	if (sync && ops->write_sync)
		written = ops->write_sync(log->disk, log->file, bytes, count, offset, &synced);
	if (written == -EOPNOTSUPP)
		return write_then_sync(log, bytes, count, offset, sync);
	if (written == (int64_t)count)
		return synced < 0 ? fail(log) : 0;
	/* Short or refused: the plain calls either finish it, or say why not. */
	return write_then_sync(log, bytes, count, offset, sync);
}

/* The last segment's records are so much longer, and what is ahead of them so much shorter. */
static void take_in(struct log *log, size_t bytes)
{
	uint64_t over = bytes < log->ahead ? bytes : log->ahead;

	log_last(log)->bytes += bytes;
	log->ahead -= over;
	log->bytes += bytes - over;
}

int log_append(struct log *log, uint8_t *records, size_t bytes, bool sync,
               struct log_place *ret_place)
{
	struct segment *last = log_last(log);
	uint64_t count;
	int result = log->failed;

	if (result == 0 && last->bytes + bytes > log->segment_bytes &&
	    last->bytes > SEGMENT_HEADER_BYTES)
		result = rotate(log);
	if (result < 0)
		return result;
	last = log_last(log);
	stretch(log, bytes);
	count = seal(log, records, bytes);
	result = write_out(log, records, bytes, last->bytes, sync);
	if (result < 0)
		return result;
	*ret_place = (struct log_place){ .segment = last->number, .offset = last->bytes };
	take_in(log, bytes);
	log->sequence += count;
	if (sync) {
		log->stable = log->sequence;
		log->syncs++;
	}
	return 0;
}

int log_sync(struct log *log)
{
	if (log->failed < 0)
		return log->failed;
	return log->stable == log->sequence ? 0 : sync_now(log);
}

int log_trim(struct log *log)
{
	int result = log->failed;

	if (result < 0 || log->ahead == 0)
		return result < 0 ? result : log_sync(log);
	result = take_back_ahead(log);
	return result < 0 ? result : sync_now(log);
}

/* ---- drop ---- */

int log_drop_first(struct log *log)
{
	char name[DISK_NAME_MAX];
	int result;

	segment_name(name, log->segments[0].number);
	result = log->disk->ops->unlink(log->disk, name);
	if (result < 0)
		return result;
	log->bytes -= log->segments[0].bytes;
	log->count--;
	for (uint32_t i = 0; i < log->count; i++)
		log->segments[i] = log->segments[i + 1];
	/* Before the next one goes: recovery wants them without gaps. */
	return log->disk->ops->sync_dir(log->disk) < 0 ? fail(log) : 0;
}

void log_close(struct log *log)
{
	if (log->file >= 0)
		log->disk->ops->close(log->disk, log->file);
	free(log->segments);
	*log = (struct log){ .file = -1 };
}
