/* SPDX-License-Identifier: MIT */
/* For the leader and the opener. tests/journal crash the simulated disk. */
#include "journal/watermark.h"

#include <errno.h>
#include <string.h>

#include "journal/crc32c.h"
#include "journal/little.h"
#include "journal/record.h"

enum {
	MARK_AT_MAGIC = 0,
	MARK_AT_SEQUENCE = 8,
	MARK_AT_CRC = 16, /* checksum of the bytes before MARK_AT_CRC */
	MARK_AT_ZEROS = 20,
};

#define MAGIC_BYTES 8
static const uint8_t watermark_magic[MAGIC_BYTES] = { 't', 'h', 'u', 'b', 'm', 'a', 'r', 'k' };

static void mark_encode(uint8_t *to, uint64_t sequence)
{
	memset(to, 0, WATERMARK_BYTES);
	memcpy(to + MARK_AT_MAGIC, watermark_magic, MAGIC_BYTES);
	little_put64(to + MARK_AT_SEQUENCE, sequence);
	little_put32(to + MARK_AT_CRC, crc32c(0, to, MARK_AT_CRC));
}

int watermark_read(struct disk *disk, bool *ret_is_there, uint64_t *ret_sequence)
{
	uint8_t bytes[WATERMARK_BYTES], expected[WATERMARK_BYTES];
	uint64_t size;
	int file = disk->ops->open(disk, WATERMARK_NAME, false, &size);
	size_t count = 0;

	*ret_is_there = file >= 0;
	*ret_sequence = 0;
	if (file < 0)
		return file == -ENOENT ? 0 : file;
	while (count < WATERMARK_BYTES) {
		int64_t got =
			disk->ops->read(disk, file, bytes + count, WATERMARK_BYTES - count, count);

		if (got <= 0)
			break; /* if the watermark is unreadable, *ret_sequence stays 0 */
		count += (size_t)got;
	}
	disk->ops->close(disk, file);
	if (count < WATERMARK_BYTES)
		return 0;
	mark_encode(expected, little_get64(bytes + MARK_AT_SEQUENCE));
	if (memcmp(bytes, expected, WATERMARK_BYTES) == 0 &&
	    little_get64(bytes + MARK_AT_SEQUENCE) < RECORD_NUMBER_END)
		*ret_sequence = little_get64(bytes + MARK_AT_SEQUENCE);
	return 0;
}

int watermark_write(struct disk *disk, int file, uint64_t sequence)
{
	uint8_t bytes[WATERMARK_BYTES];
	size_t count = 0;

	mark_encode(bytes, sequence);
	while (count < WATERMARK_BYTES) {
		int64_t written =
			disk->ops->write(disk, file, bytes + count, WATERMARK_BYTES - count, count);

		if (written <= 0)
			return written < 0 ? (int)written : -ENOSPC;
		count += (size_t)written;
	}
	return 0;
}

int watermark_open(struct disk *disk, bool is_there, uint64_t sequence)
{
	uint64_t size;
	int file = is_there ? disk->ops->open(disk, WATERMARK_NAME, true, &size)
	                    : disk->ops->create(disk, WATERMARK_NAME);
	int result;

	if (file < 0)
		return file;
	result = watermark_write(disk, file, sequence);
	if (result == 0)
		result = disk->ops->sync(disk, file);
	if (result == 0)
		result = disk->ops->sync_dir(disk);
	if (result == 0)
		return file;
	disk->ops->close(disk, file);
	return result;
}
