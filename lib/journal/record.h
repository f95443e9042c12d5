/* SPDX-License-Identifier: MIT */
/*
 * Encodes and decodes the records and segment headers of the file format, by pure functions.
 * man/timerhub-journal.5 describes the format.
 *
 * A record is written in two steps. The caller has the data and calls record_encode(). The leader
 * knows the sequence number and calls record_seal(). Therefore a record has two checksums. The
 * first covers the body (interval, key, data). The second covers the header, which holds the first.
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
#define RECORD_KEY_MAX_BYTES 255u
#define RECORD_INTERVAL_BYTES 8u /* before the key, if the task is periodic */
/*
 * Every id, sequence and segment number is smaller than this, so the sum of two of them does not
 * overflow.
 */
#define RECORD_NUMBER_END (UINT64_C(1) << 63)
#define FORMAT_VERSION 2u

enum record_type {
	RECORD_PUT = 1,    /* a task: id, due, data */
	RECORD_MOVE = 2,   /* a new due */
	RECORD_CANCEL = 3, /* the task is gone */
	RECORD_DONE = 4,   /* the task is gone */
	RECORD_RETRY = 5,  /* given back with a new due */
	RECORD_TAKE = 6,   /* delivered: attempts */
	RECORD_COPY = 7,   /* a task copied by compaction: id, due, attempts, data */
	RECORD_CLOSE = 8,  /* the journal was closed: a bad record before this one is damage */
	RECORD_DROP = 9,   /* segments before number `id` no longer count, and may be gone */
	RECORD_PARK = 10,  /* not delivered until it is renewed: due, attempts, reason */
	RECORD_RENEW = 11, /* a new due and no attempts: the next period, or no longer parked */
	RECORD_TYPE_END = 12,
};

enum record_flags {
	RECORD_MORE = 1,   /* the next record belongs to the same transaction */
	RECORD_PARKED = 2, /* of COPY: the task is parked */
};

struct record {
	enum record_type type;
	uint32_t flags;    /* enum record_flags */
	uint32_t data_len; /* only of PUT and COPY, like key, interval and data */
	uint32_t key_len;
	uint32_t body_crc; /* from record_body_crc() */
	uint32_t attempts; /* saturates */
	uint32_t reason;   /* why it is parked: of PARK, and of COPY with RECORD_PARKED */
	uint64_t sequence; /* the record's number in the log, without gaps */
	uint64_t stable;   /* up to this sequence the log was stable when this was written */
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns; /* 0: not periodic */
	const void *key;
	const void *data;
};

struct segment_header {
	uint32_t version;
	uint32_t salt;   /* seeds the CRC of its records, so that records of other files are bad */
	uint64_t number; /* as in the file's name */
	uint64_t oldest; /* segments before this number no longer count */
	uint64_t first_sequence; /* sequence number of its first record */
	uint64_t next_id;        /* no task put before has this id or a higher one */
};

/* Returns the bytes of a record: header, body and padding. */
size_t record_bytes(uint64_t interval_ns, uint32_t key_len, uint32_t data_len);
size_t record_size(const struct record *record);

/* Returns the checksum of a record's interval, key and data. */
uint32_t record_body_crc(const struct record *record);

/* Write all but sequence, stable and the header's checksum into record_size() bytes. */
void record_encode(uint8_t *to, const struct record *record);

/* Returns the size of a record that record_encode() has written. */
size_t record_size_at(const uint8_t *at);

/* Write the fields that record_encode() left out. Returns the record's size. */
size_t record_seal(uint8_t *at, uint32_t salt, uint64_t sequence, uint64_t stable);

enum record_verdict {
	RECORD_GOOD,
	RECORD_SHORT, /* more bytes are needed: *ret_bytes in all */
	RECORD_BAD,
};

/*
 * Decode the record here, if it is good with this salt. Then `*ret_record` points into `from`, and
 * `*ret_bytes` is the record's size.
 */
enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes);

/*
 * Decode a good header of a record without its body (interval, key, data). The search behind damage
 * uses it.
 */
bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record);

/*
 * Returns whether there is a header with the right checksum that record_encode() cannot have
 * written. It is not a torn write: the file was forged, or a later version wrote it.
 */
bool record_is_foreign(const uint8_t *from, uint32_t salt);

/* If these bytes can be a record's header, compute the salt with which the header would be good. */
bool record_guess_salt(const uint8_t *from, uint32_t *ret_salt);

void segment_header_encode(uint8_t *to, const struct segment_header *header);

/* Returns the bytes at the salt's offset, even of a bad header. */
uint32_t segment_header_salt(const uint8_t *from);

/* Decode a segment's header. Returns 0, -EBADMSG, or -EOPNOTSUPP for another version. */
int segment_header_decode(const uint8_t *from, struct segment_header *ret_header);

#endif
