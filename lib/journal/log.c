/* SPDX-License-Identifier: MIT */
/* See log.h. One thread at a time. Held to every refusal and crash of a disk by tests/journal. */
#include "log.h"

#include <errno.h>
#include <stdlib.h>

#include "reader.h"
#include "record.h"

/* A segment being made; becomes a segment by being renamed when its header is stable. */
#define NEW_NAME "segment.new"

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

/* The last segment's records must be stable before there is a next one: recovery relies on it. */
static int rotate(struct log *log)
{
	int result = log_sync(log);

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
	const struct disk_ops *ops = log->disk->ops;

	if (ops->truncate(log->disk, log->file, log_last(log)->bytes) < 0 ||
	    ops->sync(log->disk, log->file) < 0)
		return fail(log);
	log->stable = log->sequence;
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
	count = seal(log, records, bytes);
	result = write_out(log, records, bytes, last->bytes, sync);
	if (result < 0)
		return result;
	*ret_place = (struct log_place){ .segment = last->number, .offset = last->bytes };
	last->bytes += bytes;
	log->bytes += bytes;
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
	if (log->stable == log->sequence)
		return 0;
	if (log->disk->ops->sync(log->disk, log->file) < 0)
		return fail(log);
	log->stable = log->sequence;
	return 0;
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
