/* SPDX-License-Identifier: MIT */
/* See record.h. Whoever has the bytes calls; tests/journal/test_record.c flips every bit. */
#include "record.h"

#include <errno.h>
#include <string.h>

#include "crc32c.h"
#include "little.h"

/* Where a field is in a record. */
enum {
	AT_CRC = 0, /* of the rest of the header */
	AT_DATA_CRC = 4,
	AT_DATA_LEN = 8,
	AT_TYPE = 12, /* 32 bits, of which 8 are used */
	AT_SEQUENCE = 16,
	AT_STABLE = 24,
	AT_ID = 32,
	AT_DUE = 40,
	AT_ATTEMPTS = 48,
};

/* And in a segment's header. */
enum {
	AT_MAGIC = 0,
	AT_HEADER_CRC = 8, /* of all but itself */
	AT_VERSION = 12,
	AT_NUMBER = 16,
	AT_OLDEST = 24,
	AT_FIRST_SEQUENCE = 32,
	AT_NEXT_ID = 40,
	AT_SALT = 48,
	AT_UNUSED = 52, /* zeros */
};

#define MAGIC_BYTES 8
static const uint8_t magic[MAGIC_BYTES] = { 't', 'h', 'u', 'b', 'j', 'n', 'l', '\n' };

size_t record_bytes(uint32_t data_len)
{
	size_t padded =
		((size_t)data_len + RECORD_ALIGN_BYTES - 1) & ~(size_t)(RECORD_ALIGN_BYTES - 1);

	return RECORD_HEADER_BYTES + padded;
}

static bool has_data(uint32_t type)
{
	return type == RECORD_PUT || type == RECORD_COPY;
}

void record_encode(uint8_t *to, const struct record *record)
{
	size_t bytes = record_bytes(record->data_len);

	memset(to, 0, RECORD_HEADER_BYTES);
	little_put32(to + AT_DATA_CRC, record->data_crc);
	little_put32(to + AT_DATA_LEN, record->data_len);
	little_put32(to + AT_TYPE, record->type);
	little_put64(to + AT_ID, record->id);
	little_put64(to + AT_DUE, record->due_ns);
	little_put64(to + AT_ATTEMPTS, record->attempts);
	if (record->data_len == 0)
		return;
	memset(to + bytes - RECORD_ALIGN_BYTES, 0, RECORD_ALIGN_BYTES); /* the padding */
	memcpy(to + RECORD_HEADER_BYTES, record->data, record->data_len);
}

static uint32_t header_crc(const uint8_t *at, uint32_t salt)
{
	return crc32c(salt, at + AT_DATA_CRC, RECORD_HEADER_BYTES - AT_DATA_CRC);
}

size_t record_seal(uint8_t *at, uint32_t salt, uint64_t sequence, uint64_t stable)
{
	little_put64(at + AT_SEQUENCE, sequence);
	little_put64(at + AT_STABLE, stable);
	little_put32(at + AT_CRC, header_crc(at, salt));
	return record_bytes(little_get32(at + AT_DATA_LEN));
}

bool record_decode_header(const uint8_t *from, uint32_t salt, struct record *ret_record)
{
	uint32_t type = little_get32(from + AT_TYPE);
	struct record record = {
		.type = (enum record_type)type,
		.data_len = little_get32(from + AT_DATA_LEN),
		.data_crc = little_get32(from + AT_DATA_CRC),
		.sequence = little_get64(from + AT_SEQUENCE),
		.stable = little_get64(from + AT_STABLE),
		.id = little_get64(from + AT_ID),
		.due_ns = little_get64(from + AT_DUE),
		.attempts = little_get64(from + AT_ATTEMPTS),
	};

	/* What is cheap to see comes first: the search behind damage asks at every eighth byte. */
	if (type < RECORD_PUT || type > RECORD_DROP || record.stable >= record.sequence ||
	    record.data_len > (has_data(type) ? RECORD_DATA_MAX_BYTES : 0) ||
	    header_crc(from, salt) != little_get32(from + AT_CRC))
		return false;
	*ret_record = record;
	return true;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

enum record_verdict record_decode(const uint8_t *from, size_t available, uint32_t salt,
                                  struct record *ret_record, size_t *ret_bytes)
{
	struct record record;
	size_t bytes, data_end;

	*ret_bytes = RECORD_HEADER_BYTES;
	if (available < RECORD_HEADER_BYTES)
		return RECORD_SHORT;
	if (!record_decode_header(from, salt, &record))
		return RECORD_BAD;
	bytes = record_bytes(record.data_len);
	*ret_bytes = bytes;
	if (available < bytes)
		return RECORD_SHORT;
	data_end = RECORD_HEADER_BYTES + record.data_len;
	record.data = from + RECORD_HEADER_BYTES;
	if (crc32c(0, record.data, record.data_len) != record.data_crc ||
	    !is_zero(from + data_end, bytes - data_end))
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
	memcpy(to + AT_MAGIC, magic, MAGIC_BYTES);
	little_put32(to + AT_VERSION, header->version);
	little_put64(to + AT_NUMBER, header->number);
	little_put64(to + AT_OLDEST, header->oldest);
	little_put64(to + AT_FIRST_SEQUENCE, header->first_sequence);
	little_put64(to + AT_NEXT_ID, header->next_id);
	little_put32(to + AT_SALT, header->salt);
	little_put32(to + AT_HEADER_CRC, segment_header_crc(to));
}

int segment_header_decode(const uint8_t *from, struct segment_header *ret_header)
{
	if (memcmp(from + AT_MAGIC, magic, MAGIC_BYTES) != 0 ||
	    segment_header_crc(from) != little_get32(from + AT_HEADER_CRC))
		return -EBADMSG;
	/* A later version keeps magic, checksum and version where they are. */
	if (little_get32(from + AT_VERSION) != FORMAT_VERSION)
		return -EOPNOTSUPP;
	if (!is_zero(from + AT_UNUSED, SEGMENT_HEADER_BYTES - AT_UNUSED))
		return -EBADMSG;
	*ret_header = (struct segment_header){
		.version = FORMAT_VERSION,
		.salt = little_get32(from + AT_SALT),
		.number = little_get64(from + AT_NUMBER),
		.oldest = little_get64(from + AT_OLDEST),
		.first_sequence = little_get64(from + AT_FIRST_SEQUENCE),
		.next_id = little_get64(from + AT_NEXT_ID),
	};
	return 0;
}
