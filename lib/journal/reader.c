/* SPDX-License-Identifier: MIT */
/* See reader.h. Tests cut, flip and tear what it reads at every place: tests/journal. */
#include "reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)256 << 10)

void segment_name(char name[DISK_NAME_MAX], uint64_t number)
{
	(void)snprintf(name, DISK_NAME_MAX, "%016" PRIx64 ".seg", number);
}

/* Make room for `count` bytes from reader->offset on, keeping those that are there. */
static int make_room(struct reader *reader, size_t count)
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

/* See to it that `count` bytes from reader->offset on are in the buffer, or all there are. */
static int fill(struct reader *reader, size_t count)
{
	int result;

	if (reader->offset >= reader->buffer_offset &&
	    reader->offset + count <= reader->buffer_offset + reader->buffer_bytes)
		return 0;
	result = make_room(reader, count);
	while (result == 0 && reader->buffer_bytes < count) {
		uint64_t at = reader->buffer_offset + reader->buffer_bytes;
		uint64_t want = reader->capacity - reader->buffer_bytes;
		int64_t got;

		if (at >= reader->end)
			break;
		if (want > reader->end - at)
			want = reader->end - at;
		got = reader->disk->ops->read(reader->disk, reader->file,
		                              reader->buffer + reader->buffer_bytes, (size_t)want,
		                              at);
		if (got <= 0)
			return got < 0 ? (int)got : -EIO; /* it has shrunk under our hands */
		reader->buffer_bytes += (size_t)got;
	}
	return result;
}

/* What is in the buffer from reader->offset on. */
static const uint8_t *here(const struct reader *reader, size_t *ret_bytes)
{
	size_t skip = (size_t)(reader->offset - reader->buffer_offset);

	*ret_bytes = reader->buffer_bytes - skip;
	return reader->buffer + skip;
}

static int read_header(struct reader *reader, uint64_t number)
{
	size_t bytes;
	int result = fill(reader, SEGMENT_HEADER_BYTES);

	if (result < 0)
		return result;
	if (reader->buffer_bytes < SEGMENT_HEADER_BYTES)
		return -EBADMSG;
	result = segment_header_decode(here(reader, &bytes), &reader->header);
	if (result == 0 && reader->header.number != number)
		result = -EBADMSG;
	if (result == 0)
		reader->offset = SEGMENT_HEADER_BYTES;
	return result;
}

int reader_open(struct reader *reader, struct disk *disk, uint64_t number, bool write)
{
	char name[DISK_NAME_MAX];
	int result;

	*reader = (struct reader){ .disk = disk, .file = -1 };
	segment_name(name, number);
	result = disk->ops->open(disk, name, write, &reader->end);
	if (result < 0)
		return result;
	reader->file = result;
	reader->capacity = reader->end < BUFFER_BYTES ? (size_t)reader->end : BUFFER_BYTES;
	if (reader->capacity < SEGMENT_HEADER_BYTES)
		reader->capacity = SEGMENT_HEADER_BYTES;
	reader->buffer = malloc(reader->capacity);
	return reader->buffer ? read_header(reader, number) : -ENOMEM;
}

void reader_close(struct reader *reader)
{
	if (reader->disk && reader->file >= 0)
		reader->disk->ops->close(reader->disk, reader->file);
	free(reader->buffer);
	*reader = (struct reader){ .file = -1 };
}

int reader_release(struct reader *reader)
{
	int file = reader->file;

	reader->file = -1;
	return file;
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
		int result = fill(reader, want);

		if (result < 0)
			return result;
		from = here(reader, &available);
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

int reader_search(struct reader *reader, uint64_t from, uint64_t stable_from)
{
	uint64_t bad = reader->offset;

	for (reader->offset += RECORD_ALIGN_BYTES;
	     reader->offset + RECORD_HEADER_BYTES <= reader->end;
	     reader->offset += RECORD_ALIGN_BYTES) {
		struct record record;
		size_t available;
		int result = fill(reader, RECORD_HEADER_BYTES);

		if (result < 0)
			return result;
		if (record_decode_header(here(reader, &available), reader->header.salt, &record) &&
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

		result = fill(reader, 1);
		if (result < 0)
			break;
		from = here(reader, &available);
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
