/* SPDX-License-Identifier: MIT */
/*
 * Encodes and decodes the records and segment headers of a journal's files, by pure functions.
 * man/timerhub-journal.5 describes the format.
 *
 * A caller, which has the data, encodes a record by record_encode(). Later the leader, which knows
 * the sequence number, completes the record by record_seal(). Because two threads make a record,
 * the record has two checksums. The first checksum covers the body (interval, key, data). The
 * second checksum covers the header, which holds the first checksum.
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
/*
 * Ids, sequence numbers and segment numbers are below RECORD_NUMBER_END, so the sum of two such
 * numbers does not overflow.
 */
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
	/* The last record of a closed journal. A bad record before a CLOSE record is damage. */
	RECORD_CLOSE = 8,
	RECORD_DROP = 9,  /* record that drops all segments with numbers below the record's `id` */
	RECORD_PARK = 10, /* record of a parked task, with due time, attempts and reason */
	/*
	 * Record of a task that got its next period or was revived, with the new due time. The
	 * task's attempts become 0.
	 */
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
	/* Why the task is parked; in a PARK record, and in a COPY record with RECORD_PARKED. */
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

/*
 * Encode a record into record_size() bytes at `to`. Leave out the fields `sequence` and `stable`
 * and the header's checksum, which record_seal() writes.
 */
void record_encode(uint8_t *to, const struct record *record);

/* Returns the size of the encoded record at `at`. */
size_t record_size_at(const uint8_t *at);

/*
 * Complete an encoded record: write the fields `sequence` and `stable` and the header's checksum.
 * Returns the record's size.
 */
size_t record_seal(uint8_t *at, uint32_t salt, uint64_t sequence, uint64_t stable);

enum record_verdict {
	RECORD_GOOD,
	RECORD_SHORT, /* more bytes are needed: the record has *ret_bytes bytes */
	RECORD_BAD,
};

/*
 * Decode the record at `from`. If the record is good with the salt, the pointers in `*ret_record`
 * point into `from`, and `*ret_bytes` is the record's size.
 */
enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes);

/*
 * Decode a record's header, without the body (interval, key, data). Returns false if the header is
 * not good. The search for good records behind damage uses record_decode_header().
 */
bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record);

/*
 * Returns whether the bytes are a record header with a right checksum, but with fields that
 * record_encode() never writes. A torn write cannot leave a foreign header, but a forger or a later
 * version of the library can.
 */
bool record_is_foreign(const uint8_t *from, uint32_t salt);

/*
 * Compute the salt with which the header at `from` would be good. Returns false if the bytes cannot
 * be a record's header.
 */
bool record_guess_salt(const uint8_t *from, uint32_t *ret_salt);

void segment_header_encode(uint8_t *to, const struct segment_header *header);

/* Returns the salt in a segment's header, even if the header is bad. */
uint32_t segment_header_salt(const uint8_t *from);

/*
 * Decode a segment's header. Returns 0, -EBADMSG if the header is bad, or -EOPNOTSUPP if it has
 * another version.
 */
int segment_header_decode(const uint8_t *from, struct segment_header *ret_header);

#endif
