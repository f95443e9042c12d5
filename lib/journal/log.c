/* SPDX-License-Identifier: MIT */
/* Begins and drops segments. tests/journal let a disk refuse, or crash at, any operation. */
#include "journal/log.h"

#include <errno.h>
#include <stdlib.h>

#include "journal/reader.h"
#include "journal/record.h"
#include "journal/watermark.h"

void log_init(struct log *log, struct disk *disk, uint64_t segment_bytes)
{
	*log = (struct log){
		.disk = disk,
		.segment_bytes = segment_bytes,
		.file = -1,
		.watermark = -1,
		.next_id = 1,
		.spare = { .file = -1 },
	};
}

struct segment *log_last(struct log *log)
{
	return &log->segments[log->count - 1];
}

int log_fail(struct log *log)
{
	log->failed = -EIO;
	return -EIO;
}

uint64_t log_disk_bytes(const struct log *log)
{
	return log->bytes + log->spare.bytes + (log->watermark >= 0 ? WATERMARK_BYTES : 0);
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

int log_write_all(struct log *log, int file, const uint8_t *bytes, size_t count, uint64_t offset)
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

static int log_write_header(struct log *log, int file, const struct segment_header *header)
{
	uint8_t bytes[SEGMENT_HEADER_BYTES];
	int result;

	segment_header_encode(bytes, header);
	result = log_write_all(log, file, bytes, sizeof(bytes), 0);
	if (result == 0 && log->disk->ops->sync(log->disk, file) < 0)
		result = log_fail(log);
	return result;
}

/* Renamed to its segment's name, it is the last. */
static int log_publish(struct log *log, int file, const struct segment_header *header)
{
	const struct disk_ops *ops = log->disk->ops;
	char name[DISK_NAME_MAX];
	int before = log->file, result;

	segment_name(name, header->number);
	result = log_add_segment(log, header->number, SEGMENT_HEADER_BYTES);
	if (result < 0)
		return result;
	result = ops->rename(log->disk, LOG_NEW_NAME, name);
	if (result < 0) {
		log->count--;
		log->bytes -= SEGMENT_HEADER_BYTES;
		/*
		 * after -EIO the rename may be on the disk: more records in the old segment would
		 * be a gap before an empty new one
		 */
		return result == -EIO ? log_fail(log) : result;
	}
	log->file = file;
	disk_close(log->disk, &before);
	log->salt = header->salt;
	log->plain_to = 0;
	/* Make the new segment's name stable before its first record is written. */
	return ops->sync_dir(log->disk) < 0 ? log_fail(log) : 0;
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
	int file = ops->create(log->disk, LOG_NEW_NAME);
	int result;

	if (file < 0)
		return file;
	result = log_write_header(log, file, &header);
	if (result == 0)
		result = log_publish(log, file, &header);
	if (log->file != file) {
		ops->close(log->disk, file);
		/* If unlink() fails, the next timerhub_journal_open() removes the file. */
		(void)ops->unlink(log->disk, LOG_NEW_NAME);
	}
	return result;
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
	/* before the next is dropped: recovery refuses a gap */
	return log->disk->ops->sync_dir(log->disk) < 0 ? log_fail(log) : 0;
}

void log_leave(struct log *log)
{
	disk_close(log->disk, &log->file);
	disk_close(log->disk, &log->watermark);
	disk_reserve_close(&log->spare);
}

void log_close(struct log *log)
{
	log_leave(log);
	free(log->segments);
	log_init(log, log->disk, log->segment_bytes);
}
