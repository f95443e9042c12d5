/* SPDX-License-Identifier: MIT */
/*
 * See spare.h. Only the leader or the thread in open uses the spare. The tests in tests/journal
 * fill the disk.
 */
#include "journal/spare.h"

#include <errno.h>

#define SPARE_NAME "spare"
#define ZEROS_BYTES ((size_t)64 << 10)

static const uint8_t spare_zeros[ZEROS_BYTES];

int spare_open(struct spare *spare, struct disk *disk)
{
	int file = disk->ops->open(disk, SPARE_NAME, true, &spare->bytes);

	spare->disk = disk;
	spare->file = file < 0 ? -1 : file;
	if (file < 0)
		spare->bytes = 0;
	return file == -ENOENT || file >= 0 ? 0 : file;
}

void spare_close(struct spare *spare)
{
	if (spare->file >= 0)
		spare->disk->ops->close(spare->disk, spare->file);
	spare->file = -1;
}

static int spare_write(struct spare *spare, uint64_t to)
{
	uint64_t at = spare->bytes;

	while (at < to) {
		size_t count = to - at < ZEROS_BYTES ? (size_t)(to - at) : ZEROS_BYTES;
		int64_t written =
			spare->disk->ops->write(spare->disk, spare->file, spare_zeros, count, at);

		if (written <= 0) {
			/*
			 * Cut the file to its old size. If the cut fails too, the file is larger
			 * than `bytes` says.
			 */
			(void)spare->disk->ops->truncate(spare->disk, spare->file, spare->bytes);
			return written < 0 ? (int)written : -ENOSPC;
		}
		at += (uint64_t)written;
	}
	spare->bytes = to;
	return 0;
}

int spare_grow(struct spare *spare, uint64_t bytes, uint64_t more)
{
	if (spare->bytes >= bytes)
		return 0;
	if (spare->file < 0) {
		int file = spare->disk->ops->create(spare->disk, SPARE_NAME);

		if (file < 0)
			return file;
		spare->file = file;
	}
	return more > bytes && spare_write(spare, more) == 0 ? 0 : spare_write(spare, bytes);
}

bool spare_give(struct spare *spare, uint64_t bytes)
{
	uint64_t left = spare->bytes > bytes ? spare->bytes - bytes : 0;

	if (spare->bytes == 0 || spare->disk->ops->truncate(spare->disk, spare->file, left) < 0)
		return false;
	spare->bytes = left;
	return true;
}
