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
#define RECORD_INTERVAL_BYTES 8u /* the interval of a periodic task, before its key */
/*
 * Ids, sequence numbers and segment numbers are smaller than this, so the sum of two such numbers
 * does not overflow.
 */
#define RECORD_NUMBER_END (UINT64_C(1) << 63)
#define FORMAT_VERSION 2u

enum record_type {
	RECORD_PUT = 1,    /* a new task: id, due time, data */
	RECORD_MOVE = 2,   /* a new due time of a task */
	RECORD_CANCEL = 3, /* a task is cancelled */
	RECORD_DONE = 4,   /* a task is done */
	RECORD_RETRY = 5,  /* a worker returned a task, with a new due time */
	RECORD_TAKE = 6,   /* a task was delivered; has its number of attempts */
	RECORD_COPY = 7,   /* a task that compaction copied: id, due time, attempts, data */
	RECORD_CLOSE = 8,  /* the journal was closed; a bad record before a CLOSE is damage */
	RECORD_DROP = 9,   /* segments before number `id` were dropped, and may be missing */
	RECORD_PARK = 10,  /* a task is parked: due time, attempts, reason */
	/* Next period of a task, or end of its parking: new due time, attempts 0. */
	RECORD_RENEW = 11,
	RECORD_TYPE_END = 12,
};

enum record_flags {
	RECORD_MORE = 1,   /* the next record belongs to the same transaction */
	RECORD_PARKED = 2, /* flag of a COPY: the task is parked */
};

struct record {
	enum record_type type;
	uint32_t flags;    /* enum record_flags */
	uint32_t data_len; /* only PUT and COPY have data, key and interval */
	uint32_t key_len;
	uint32_t body_crc; /* result of record_body_crc() */
	uint32_t attempts; /* number of deliveries; stops at UINT32_MAX */
	uint32_t reason;   /* why the task is parked; in a PARK, and in a COPY with RECORD_PARKED */
	uint64_t sequence; /* the record's number in the log, without gaps */
	uint64_t stable;   /* the log was stable up to this sequence when the record was written */
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns; /* 0: not periodic */
	const void *key;
	const void *data;
};

struct segment_header {
	uint32_t version;
	/* Seed of the CRC of the segment's records, so that records of other files are bad. */
	uint32_t salt;
	uint64_t number;         /* number of the segment, as in the file's name */
	uint64_t oldest;         /* number of the oldest segment of the log */
	uint64_t first_sequence; /* sequence number of the segment's first record */
	uint64_t next_id;        /* all earlier tasks have smaller ids */
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
	RECORD_SHORT, /* the record has *ret_bytes bytes, more than were given */
	RECORD_BAD,
};

/*
 * Decode the record at `from`, if it is good with this salt. If it is good, `*ret_record` points
 * into `from`, and `*ret_bytes` is the record's size.
 */
enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes);

/*
 * Decode a good header of a record without its body (interval, key, data). The search for good
 * records behind damage uses this function.
 */
bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record);

/*
 * Returns whether there is a header with the right checksum that record_encode() cannot have
 * written. Such a header is no torn write: the file was forged, or a later version wrote it.
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
