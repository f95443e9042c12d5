/* SPDX-License-Identifier: MIT */
/*
 * For threads at the same time, with different bytes. tests/journal/test_format.c flips every bit
 * of a record.
 */
#include "journal/record.h"

#include <errno.h>
#include <string.h>

#include "journal/crc32c.h"
#include "journal/little.h"

/* Offsets of the fields in a record. */
enum {
	AT_CRC = 0, /* checksum of the header's bytes behind AT_CRC */
	AT_BODY_CRC = 4,
	AT_DATA_LEN = 8,
	AT_TYPE = 12, /* the fields from AT_TYPE to AT_UNUSED have one byte each */
	AT_KEY_LEN = 13,
	AT_FLAGS = 14,
	AT_UNUSED = 15, /* offset of an unused byte, which is zero */
	AT_SEQUENCE = 16,
	AT_STABLE = 24,
	AT_ID = 32,
	AT_DUE = 40,
	AT_ATTEMPTS = 48,
	AT_REASON = 52,
};

/* on disk: the body begins with an interval; never in struct record */
#define FLAG_PERIODIC 4u

/* Offsets of the fields in a segment's header. */
enum {
	AT_MAGIC = 0,
	AT_HEADER_CRC = 8, /* checksum of the header except the bytes of AT_HEADER_CRC */
	AT_VERSION = 12,
	AT_NUMBER = 16,
	AT_OLDEST = 24,
	AT_FIRST_SEQUENCE = 32,
	AT_NEXT_ID = 40,
	AT_SALT = 48,
	AT_ZEROS = 52,
};

#define MAGIC_BYTES 8
static const uint8_t record_magic[MAGIC_BYTES] = { 't', 'h', 'u', 'b', 'j', 'n', 'l', '\n' };

size_t record_bytes(uint64_t interval_ns, uint32_t key_len, uint32_t data_len)
{
	size_t body = (interval_ns > 0 ? RECORD_INTERVAL_BYTES : 0) + (size_t)key_len + data_len;
	size_t padded = (body + RECORD_ALIGN_BYTES - 1) & ~(size_t)(RECORD_ALIGN_BYTES - 1);

	return RECORD_HEADER_BYTES + padded;
}

size_t record_size(const struct record *record)
{
	return record_bytes(record->interval_ns, record->key_len, record->data_len);
}

uint32_t record_body_crc(const struct record *record)
{
	uint8_t interval[RECORD_INTERVAL_BYTES];
	uint32_t crc = 0;

	if (record->interval_ns > 0) {
		little_put64(interval, record->interval_ns);
		crc = crc32c(crc, interval, sizeof(interval));
	}
	crc = crc32c(crc, record->key, record->key_len);
	return crc32c(crc, record->data, record->data_len);
}

static bool record_has_body(uint32_t type)
{
	return type == RECORD_PUT || type == RECORD_COPY;
}

static void record_encode_body(uint8_t *to, const struct record *record)
{
	if (record->interval_ns > 0) {
		little_put64(to, record->interval_ns);
		to += RECORD_INTERVAL_BYTES;
	}
	if (record->key_len > 0)
		memcpy(to, record->key, record->key_len);
	if (record->data_len > 0)
		memcpy(to + record->key_len, record->data, record->data_len);
}

void record_encode(uint8_t *to, const struct record *record)
{
	size_t bytes = record_size(record);
	uint32_t flags = record->flags | (record->interval_ns > 0 ? FLAG_PERIODIC : 0);

	memset(to, 0, RECORD_HEADER_BYTES);
	little_put32(to + AT_BODY_CRC, record->body_crc);
	little_put32(to + AT_DATA_LEN, record->data_len);
	to[AT_TYPE] = (uint8_t)record->type;
	to[AT_KEY_LEN] = (uint8_t)record->key_len;
	to[AT_FLAGS] = (uint8_t)flags;
	little_put64(to + AT_ID, record->id);
	little_put64(to + AT_DUE, record->due_ns);
	little_put32(to + AT_ATTEMPTS, record->attempts);
	little_put32(to + AT_REASON, record->reason);
	if (bytes == RECORD_HEADER_BYTES)
		return;
	/* Zero the last bytes of the record, because some of them may be padding. */
	memset(to + bytes - RECORD_ALIGN_BYTES, 0, RECORD_ALIGN_BYTES);
	record_encode_body(to + RECORD_HEADER_BYTES, record);
}

static uint32_t record_header_crc(const uint8_t *at, uint32_t salt)
{
	return crc32c(salt, at + AT_BODY_CRC, RECORD_HEADER_BYTES - AT_BODY_CRC);
}

size_t record_size_at(const uint8_t *at)
{
	return record_bytes(at[AT_FLAGS] & FLAG_PERIODIC, at[AT_KEY_LEN],
	                    little_get32(at + AT_DATA_LEN));
}

size_t record_seal(uint8_t *at, uint32_t salt, uint64_t sequence, uint64_t stable)
{
	little_put64(at + AT_SEQUENCE, sequence);
	little_put64(at + AT_STABLE, stable);
	little_put32(at + AT_CRC, record_header_crc(at, salt));
	return record_size_at(at);
}

/* Could record_encode() have written these fields? Without a checksum. */
static bool record_may_be(const uint8_t *from, const struct record *record)
{
	bool has_body = record_has_body(record->type);
	uint32_t flags = has_body ? FLAG_PERIODIC : 0;

	if (record->type != RECORD_TAKE && record->type != RECORD_COPY &&
	    record->type != RECORD_CLOSE && record->type != RECORD_DROP)
		flags |= RECORD_MORE;
	if (record->type == RECORD_COPY)
		flags |= RECORD_PARKED;
	if (record->reason != 0 && record->type != RECORD_PARK &&
	    (record->flags & RECORD_PARKED) == 0)
		return false;
	return record->type >= RECORD_PUT && record->type < RECORD_TYPE_END &&
	       record->stable < record->sequence && record->sequence < RECORD_NUMBER_END &&
	       record->id < RECORD_NUMBER_END && from[AT_UNUSED] == 0 &&
	       (from[AT_FLAGS] & ~flags) == 0 && record->key_len <= (has_body ? UINT8_MAX : 0) &&
	       record->data_len <= (has_body ? RECORD_DATA_MAX_BYTES : 0);
}

static struct record record_read_header(const uint8_t *from)
{
	return (struct record){
		.type = (enum record_type)from[AT_TYPE],
		.flags = from[AT_FLAGS] & ~FLAG_PERIODIC,
		.data_len = little_get32(from + AT_DATA_LEN),
		.key_len = from[AT_KEY_LEN],
		.body_crc = little_get32(from + AT_BODY_CRC),
		.sequence = little_get64(from + AT_SEQUENCE),
		.stable = little_get64(from + AT_STABLE),
		.id = little_get64(from + AT_ID),
		.due_ns = little_get64(from + AT_DUE),
		.attempts = little_get32(from + AT_ATTEMPTS),
		.reason = little_get32(from + AT_REASON),
	};
}

bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record)
{
	struct record record = record_read_header(from);

	/* before the checksum, for speed: the search behind damage asks at every eighth byte */
	if (!record_may_be(from, &record) ||
	    record_header_crc(from, salt) != little_get32(from + AT_CRC))
		return false;
	*ret_record = record;
	return true;
}

bool record_is_foreign(const uint8_t *from, uint32_t salt)
{
	struct record record = record_read_header(from);

	/*
	 * for one salt in 2^32 a header of zeros has the right checksum, but no record has the
	 * sequence 0
	 */
	return record.sequence > 0 && !record_may_be(from, &record) &&
	       record_header_crc(from, salt) == little_get32(from + AT_CRC);
}

bool record_guess_salt(const uint8_t *from, uint32_t *ret_salt)
{
	struct record record = record_read_header(from);

	if (!record_may_be(from, &record))
		return false;
	*ret_salt = crc32c_before(little_get32(from + AT_CRC), from + AT_BODY_CRC,
	                          RECORD_HEADER_BYTES - AT_BODY_CRC);
	return true;
}

static bool record_is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* And lets key and data point into it. False: record_encode() can't have written it. */
static bool record_decode_body(const uint8_t *from, size_t bytes, struct record *record)
{
	const uint8_t *body = from + RECORD_HEADER_BYTES, *end = from + bytes;

	if ((from[AT_FLAGS] & FLAG_PERIODIC) != 0) {
		record->interval_ns = little_get64(body);
		body += RECORD_INTERVAL_BYTES;
		if (record->interval_ns == 0 || record->interval_ns >= RECORD_NUMBER_END)
			return false;
	}
	record->key = body;
	body += record->key_len;
	record->data = body;
	body += record->data_len;
	return record_is_zero(body, (size_t)(end - body)) &&
	       record_body_crc(record) == record->body_crc;
}

enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes)
{
	struct record record;

	*ret_bytes = RECORD_HEADER_BYTES;
	if (available < RECORD_HEADER_BYTES)
		return RECORD_SHORT;
	if (!record_decode_header(from, salt, &record))
		return RECORD_BAD;
	*ret_bytes = record_size_at(from);
	if (available < *ret_bytes)
		return RECORD_SHORT;
	if (!record_decode_body(from, *ret_bytes, &record))
		return RECORD_BAD;
	*ret_record = record;
	return RECORD_GOOD;
}

static uint32_t segment_header_crc(const uint8_t *at)
{
	uint32_t crc = crc32c(0, at, AT_HEADER_CRC);

	return crc32c(crc, at + AT_VERSION, SEGMENT_HEADER_BYTES - AT_VERSION);
}

void segment_header_encode(uint8_t *to, const struct segment_header *header)
{
	memset(to, 0, SEGMENT_HEADER_BYTES);
	memcpy(to + AT_MAGIC, record_magic, MAGIC_BYTES);
	little_put32(to + AT_VERSION, header->version);
	little_put64(to + AT_NUMBER, header->number);
	little_put64(to + AT_OLDEST, header->oldest);
	little_put64(to + AT_FIRST_SEQUENCE, header->first_sequence);
	little_put64(to + AT_NEXT_ID, header->next_id);
	little_put32(to + AT_SALT, header->salt);
	little_put32(to + AT_HEADER_CRC, segment_header_crc(to));
}

static bool segment_header_may_be(const struct segment_header *header)
{
	return header->number < RECORD_NUMBER_END && header->oldest <= header->number &&
	       header->first_sequence > 0 && header->first_sequence < RECORD_NUMBER_END &&
	       header->next_id > 0 && header->next_id <= RECORD_NUMBER_END;
}

uint32_t segment_header_salt(const uint8_t *from)
{
	return little_get32(from + AT_SALT);
}

int segment_header_decode(const uint8_t *from, struct segment_header *ret_header)
{
	if (memcmp(from + AT_MAGIC, record_magic, MAGIC_BYTES) != 0 ||
	    segment_header_crc(from) != little_get32(from + AT_HEADER_CRC))
		return -EBADMSG;
	/* Magic, checksum and version have the same offsets in every version of the format. */
	if (little_get32(from + AT_VERSION) != FORMAT_VERSION)
		return -EOPNOTSUPP;
	if (!record_is_zero(from + AT_ZEROS, SEGMENT_HEADER_BYTES - AT_ZEROS))
		return -EBADMSG;
	*ret_header = (struct segment_header){
		.version = little_get32(from + AT_VERSION),
		.salt = little_get32(from + AT_SALT),
		.number = little_get64(from + AT_NUMBER),
		.oldest = little_get64(from + AT_OLDEST),
		.first_sequence = little_get64(from + AT_FIRST_SEQUENCE),
		.next_id = little_get64(from + AT_NEXT_ID),
	};
	return segment_header_may_be(ret_header) ? 0 : -EBADMSG;
}
