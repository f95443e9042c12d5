/* SPDX-License-Identifier: MIT */
/*
 * Records and segment headers (timerhub-journal(5)), by pure functions. The caller, who has the
 * data, encodes; the leader, who knows the sequence number, seals. So there are two checksums: of
 * the body (interval, key, data), and of the header, which has the first.
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
#define RECORD_INTERVAL_BYTES 8u /* size of a periodic task's interval, before the key */
/* ids, sequence and segment numbers are below, so that a sum of two does not overflow */
#define RECORD_NUMBER_END (UINT64_C(1) << 63)
#define FORMAT_VERSION 2u

enum record_type {
	RECORD_PUT = 1,    /* record of a new task, with id, due time, key and data */
	RECORD_MOVE = 2,   /* record of a moved task, with the new due time */
	RECORD_CANCEL = 3, /* record of a cancelled task */
	RECORD_DONE = 4,   /* record of a task that is done */
	RECORD_RETRY = 5,  /* record of a returned task, with the new due time */
	RECORD_TAKE = 6,   /* record of a delivery, with the task's number of attempts */
	/* Record of a task that compaction copied, with id, due time, attempts, key and data. */
	RECORD_COPY = 7,
	/* last of a closed journal: a bad record before it is damage */
	RECORD_CLOSE = 8,
	RECORD_DROP = 9,  /* record that drops all segments with numbers below the record's `id` */
	RECORD_PARK = 10, /* record of a parked task, with due time, attempts and reason */
	/* next period, or revived: a new due time, attempts 0 */
	RECORD_RENEW = 11,
	RECORD_TYPE_END = 12,
};

enum record_flags {
	RECORD_MORE = 1,   /* the next record belongs to the same transaction */
	RECORD_PARKED = 2, /* flag of a COPY record: the copied task is parked */
};

struct record {
	enum record_type type;
	uint32_t flags; /* flags of enum record_flags */
	/* Bytes of data; only PUT and COPY records have data, key and interval. */
	uint32_t data_len;
	uint32_t key_len;
	uint32_t body_crc; /* result of record_body_crc() */
	uint32_t attempts; /* number of deliveries of the task; stops at UINT32_MAX */
	/* why parked: in PARK, and in COPY with RECORD_PARKED */
	uint32_t reason;
	uint64_t sequence; /* sequence number of the record in the log, without gaps */
	/* Sequence number up to which the log was stable when the record was written. */
	uint64_t stable;
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns; /* period of the task, or 0 if not periodic */
	const void *key;
	const void *data;
};

struct segment_header {
	uint32_t version;
	/* Seed of the records' checksums. With this seed, records of other files are bad. */
	uint32_t salt;
	uint64_t number;         /* number of the segment, also in the file's name */
	uint64_t oldest;         /* number of the oldest segment of the log */
	uint64_t first_sequence; /* sequence number of the segment's first record */
	/* Bound of ids: all earlier tasks have smaller ids. */
	uint64_t next_id;
};

/* Returns the size of a record in bytes: header, body and padding. */
size_t record_bytes(uint64_t interval_ns, uint32_t key_len, uint32_t data_len);
size_t record_size(const struct record *record);

/* Returns the checksum of a record's interval, key and data. */
uint32_t record_body_crc(const struct record *record);

/* record_size() bytes, without `sequence`, `stable` and the header's checksum. */
void record_encode(uint8_t *to, const struct record *record);

/* Returns the size of the encoded record at `at`. */
size_t record_size_at(const uint8_t *at);

/* Writes these three. Returns the record's size. */
size_t record_seal(uint8_t *at, uint32_t salt, uint64_t sequence, uint64_t stable);

enum record_verdict {
	RECORD_GOOD,
	RECORD_SHORT, /* more bytes are needed: the record has *ret_bytes bytes */
	RECORD_BAD,
};

/* If it is good with the salt, `*ret_record` points into `from`, and `*ret_bytes` is its size. */
enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes);

/* The header alone, for the search behind damage. False: not good. */
bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record);

/*
 * A right checksum over fields that record_encode() never writes: by a forger or a later version,
 * not by a torn write.
 */
bool record_is_foreign(const uint8_t *from, uint32_t salt);

/* With which the header would be good. False: it can't be one. */
bool record_guess_salt(const uint8_t *from, uint32_t *ret_salt);

void segment_header_encode(uint8_t *to, const struct segment_header *header);

/* Returns the salt in a segment's header, even if the header is bad. */
uint32_t segment_header_salt(const uint8_t *from);

/* 0, -EBADMSG, or -EOPNOTSUPP (another version). */
int segment_header_decode(const uint8_t *from, struct segment_header *ret_header);

#endif
