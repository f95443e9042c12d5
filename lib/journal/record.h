/* SPDX-License-Identifier: MIT */
/*
 * The file format: what a record and a segment's header look like, as bytes. man/timerhub-journal.5
 * is the same for readers. Pure functions of bytes.
 *
 * A record is written in two steps: record_encode() by the caller who has the data, in parallel
 * with others, and record_seal() by the writer, who knows its place in the log. Hence two
 * checksums, of the data and of the header, which holds the first.
 */
#ifndef JOURNAL_RECORD_H
#define JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_HEADER_BYTES 64u
#define RECORD_HEADER_BYTES 56u
#define RECORD_ALIGN_BYTES 8u
#define RECORD_DATA_MAX_BYTES (16u << 20)
#define FORMAT_VERSION 1u

enum record_type {
	RECORD_PUT = 1,    /* a task: id, due, data */
	RECORD_MOVE = 2,   /* a new due */
	RECORD_CANCEL = 3, /* the task is gone */
	RECORD_DONE = 4,   /* the task is gone */
	RECORD_RETRY = 5,  /* given back with a new due */
	RECORD_TAKE = 6,   /* delivered: attempts */
	RECORD_COPY = 7,   /* a task as it was when compaction met it: id, due, attempts, data */
	RECORD_CLOSE = 8,  /* closed in order; makes damage of what is before it certain */
	RECORD_DROP = 9,   /* segments before number `id` no longer count, and may be gone */
};

struct record {
	enum record_type type;
	uint32_t data_len; /* only of PUT and COPY */
	uint32_t data_crc; /* of the data */
	uint64_t sequence; /* one more than the record's before it */
	uint64_t
		stable; /* records up to this sequence were on stable storage when it was written */
	uint64_t id;
	uint64_t due_ns;
	uint64_t attempts;
	const void *data;
};

struct segment_header {
	uint32_t version;
	uint32_t salt;   /* seeds the CRC of its records: those of other files are not good here */
	uint64_t number; /* as in the file's name */
	uint64_t oldest; /* segments before this one no longer count */
	uint64_t first_sequence; /* of its first record */
	uint64_t next_id;        /* no task put before has this id or a higher one */
};

/* Header, data and padding. */
size_t record_bytes(uint32_t data_len);

/* Everything but sequence, stable and the header's checksum, into record_bytes(data_len) bytes. */
void record_encode(uint8_t *to, const struct record *record);

/* Put in what was left out. Returns the record's size. */
size_t record_seal(uint8_t *at, uint32_t salt, uint64_t sequence, uint64_t stable);

enum record_verdict {
	RECORD_GOOD,
	RECORD_SHORT, /* more bytes are needed: *ret_bytes in all */
	RECORD_BAD,
};

/*
 * Is a record of that salt here? If good, `*ret_record` points into `from`, and `*ret_bytes` is its
 * size.
 */
enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes);

/* Is there a good header of a record, whatever follows it? For the search behind damage. */
bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record);

void segment_header_encode(uint8_t *to, const struct segment_header *header);

/* 0, -EBADMSG, or -EOPNOTSUPP: a version that is not ours. */
int segment_header_decode(const uint8_t *from, struct segment_header *ret_header);

#endif
