/* SPDX-License-Identifier: MIT */
/* tests/journal cut, flip and tear segments at every offset. */
#include "journal/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)256 << 10)
/* assumed; larger ones make salvage lose more around a bad one */
#define SECTOR_BYTES 512u

void segment_name(char name[DISK_NAME_MAX], uint64_t number)
{
	(void)snprintf(name, DISK_NAME_MAX, "%016" PRIx64 ".seg", number);
}

/* From reader->offset on, keeping what is buffered. */
static int reader_make_room(struct reader *reader, size_t count)
{
	size_t skip = (size_t)(reader->offset - reader->buffer_offset);
	size_t kept = skip < reader->buffer_bytes ? reader->buffer_bytes - skip : 0;

	if (kept > 0)
		memmove(reader->buffer, reader->buffer + skip, kept);
	reader->buffer_offset = reader->offset;
	reader->buffer_bytes = kept;
	if (count > reader->capacity) {
		uint8_t *larger = realloc(reader->buffer, count);

		if (!larger)
			return -ENOMEM;
		reader->buffer = larger;
		reader->capacity = count;
	}
	return 0;
}

/* A forgiving reader's failed read ends with the sector; the next may be good. */
static int64_t reader_read(struct reader *reader, size_t count, uint64_t at)
{
	const struct disk_ops *ops = reader->disk->ops;
	uint8_t *to = reader->buffer + reader->buffer_bytes;
	size_t left = SECTOR_BYTES - (size_t)(at % SECTOR_BYTES);
	int64_t got = ops->read(reader->disk, reader->file, to, count, at);

	if (got >= 0 || !reader->forgiving)
		return got;
	count = count < left ? count : left;
	got = ops->read(reader->disk, reader->file, to, count, at);
	if (got >= 0)
		return got;
	memset(to, 0, count);
	return (int64_t)count;
}

/* Or up to the file's end. */
static int reader_fill(struct reader *reader, size_t count)
{
	int result;

	if (reader->offset >= reader->buffer_offset &&
	    reader->offset + count <= reader->buffer_offset + reader->buffer_bytes)
		return 0;
	result = reader_make_room(reader, count);
	while (result == 0 && reader->buffer_bytes < count) {
		uint64_t at = reader->buffer_offset + reader->buffer_bytes;
		uint64_t want = reader->capacity - reader->buffer_bytes;
		int64_t got;

		if (at >= reader->end)
			break;
		if (want > reader->end - at)
			want = reader->end - at;
		got = reader_read(reader, (size_t)want, at);
		if (got <= 0)
			/*
			 * The file is shorter than at reader_open(), because another process has
			 * cut it.
			 */
			return got < 0 ? (int)got : -EIO;
		reader->buffer_bytes += (size_t)got;
	}
	return result;
}

/* Returns a pointer to the buffered bytes from reader->offset on, and stores their number. */
static const uint8_t *reader_here(const struct reader *reader, size_t *ret_bytes)
{
	size_t skip = (size_t)(reader->offset - reader->buffer_offset);

	*ret_bytes = reader->buffer_bytes - skip;
	return reader->buffer + skip;
}

static int reader_read_header(struct reader *reader, uint64_t number)
{
	size_t bytes;
	int result = reader_fill(reader, SEGMENT_HEADER_BYTES);

	if (result < 0)
		return result;
	if (reader->buffer_bytes < SEGMENT_HEADER_BYTES)
		return -EBADMSG;
	result = segment_header_decode(reader_here(reader, &bytes), &reader->header);
	if (result == 0 && reader->header.number != number)
		result = -EBADMSG;
	if (result == 0)
		reader->offset = SEGMENT_HEADER_BYTES;
	return result;
}

int reader_open(struct reader *reader, struct disk *disk, uint64_t number, bool write,
                bool forgiving)
{
	char name[DISK_NAME_MAX];
	int result;

	*reader = (struct reader){ .disk = disk, .file = -1, .forgiving = forgiving };
	segment_name(name, number);
	result = disk->ops->open(disk, name, write, &reader->end);
	if (result < 0)
		return result;
	reader->file = result;
	reader->capacity = reader->end < BUFFER_BYTES ? (size_t)reader->end : BUFFER_BYTES;
	if (reader->capacity < SEGMENT_HEADER_BYTES)
		reader->capacity = SEGMENT_HEADER_BYTES;
	reader->buffer = malloc(reader->capacity);
	return reader->buffer ? reader_read_header(reader, number) : -ENOMEM;
}

/* ---- a header that is damaged ---- */

/*
 * 1: good with `salt`; 0; or a disk's error. A salt `derived` from this record always fits it, so
 * the next one's header must be good too.
 */
static int reader_try_salt(struct reader *reader, uint32_t salt, bool derived,
                           struct record *ret_record)
{
	struct record next;
	size_t available, bytes;
	int result = reader_fill(reader, RECORD_HEADER_BYTES);
	const uint8_t *from = reader_here(reader, &available);

	if (result < 0 || record_decode(from, available, salt, ret_record, &bytes) == RECORD_BAD)
		return result;
	result = reader_fill(reader, bytes + RECORD_HEADER_BYTES);
	from = reader_here(reader, &available);
	if (result < 0 || record_decode(from, available, salt, ret_record, &bytes) != RECORD_GOOD)
		return result;
	if (!derived)
		return 1;
	return available >= bytes + RECORD_HEADER_BYTES &&
	       record_decode_header(from + bytes, salt, &next) &&
	       next.sequence == ret_record->sequence + 1;
}

int reader_guess_header(struct reader *reader, uint64_t number)
{
	uint32_t said, salt;
	size_t available;
	int result;

	reader->offset = 0;
	result = reader_fill(reader, SEGMENT_HEADER_BYTES);
	if (result < 0 || reader->buffer_bytes < SEGMENT_HEADER_BYTES)
		return result;
	said = segment_header_salt(reader_here(reader, &available));
	for (reader->offset = SEGMENT_HEADER_BYTES;
	     result == 0 && reader->offset + RECORD_HEADER_BYTES <= reader->end;
	     reader->offset += RECORD_ALIGN_BYTES) {
		struct record record;

		result = reader_fill(reader, RECORD_HEADER_BYTES);
		salt = said;
		if (result == 0)
			result = reader_try_salt(reader, salt, false, &record);
		if (result == 0 && record_guess_salt(reader_here(reader, &available), &salt))
			result = reader_try_salt(reader, salt, true, &record);
		if (result == 1)
			reader->header = (struct segment_header){
				.version = FORMAT_VERSION,
				.salt = salt,
				.number = number,
				.first_sequence = record.sequence,
			};
	}
	reader->offset = SEGMENT_HEADER_BYTES;
	return result;
}

int reader_release(struct reader *reader)
{
	int file = reader->file;

	reader->file = -1;
	return file;
}

void reader_leave(struct reader *reader)
{
	if (reader->disk)
		disk_close(reader->disk, &reader->file);
}

void reader_close(struct reader *reader)
{
	reader_leave(reader);
	free(reader->buffer);
	*reader = (struct reader){ .file = -1 };
}

int reader_next(struct reader *reader, struct record *ret_record)
{
	size_t want = RECORD_HEADER_BYTES;

	if (reader->offset == reader->end)
		return 0;
	for (;;) {
		enum record_verdict verdict;
		size_t available, bytes;
		const uint8_t *from;
		int result = reader_fill(reader, want);

		if (result < 0)
			return result;
		from = reader_here(reader, &available);
		verdict = record_decode(from, available, reader->header.salt, ret_record, &bytes);
		if (verdict == RECORD_GOOD) {
			reader->offset += bytes;
			return 1;
		}
		if (verdict == RECORD_BAD || available >= bytes ||
		    bytes > reader->end - reader->offset)
			return -EBADMSG;
		want = bytes;
	}
}

int reader_is_foreign(struct reader *reader)
{
	int result = reader_fill(reader, RECORD_HEADER_BYTES);
	size_t available;
	const uint8_t *from;

	if (result < 0)
		return result;
	from = reader_here(reader, &available);
	return available >= RECORD_HEADER_BYTES && record_is_foreign(from, reader->header.salt);
}

int reader_search(struct reader *reader, uint64_t from, uint64_t stable_from)
{
	uint64_t bad = reader->offset;

	for (reader->offset += RECORD_ALIGN_BYTES;
	     reader->offset + RECORD_HEADER_BYTES <= reader->end;
	     reader->offset += RECORD_ALIGN_BYTES) {
		struct record record;
		size_t available;
		int result = reader_fill(reader, RECORD_HEADER_BYTES);

		if (result < 0)
			return result;
		if (record_decode_header(reader_here(reader, &available), reader->header.salt,
		                         &record) &&
		    record.sequence >= from && record.stable >= stable_from)
			return 1;
	}
	reader->offset = bad;
	return 0;
}

int reader_find_zeros(struct reader *reader, uint64_t *ret_offset)
{
	uint64_t begin = reader->offset, offset = begin;
	int result = 0;

	while (reader->offset < reader->end) {
		const uint8_t *from;
		size_t available;

		result = reader_fill(reader, 1);
		if (result < 0)
			break;
		from = reader_here(reader, &available);
		for (size_t i = 0; i < available; i++)
			if (from[i] != 0)
				offset = reader->offset + i + 1;
		reader->offset += available;
	}
	reader->offset = begin;
	if (result == 0)
		*ret_offset = offset;
	return result;
}
