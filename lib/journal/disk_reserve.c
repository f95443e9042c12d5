/* SPDX-License-Identifier: MIT */
/* For the leader and the opener. tests/journal fill the disk. */
#include "journal/disk_reserve.h"

#include <errno.h>

#define SPARE_NAME "spare"
#define ZEROS_BYTES ((size_t)64 << 10)

static const uint8_t disk_reserve_zeros[ZEROS_BYTES];

int disk_reserve_open(struct disk_reserve *reserve, struct disk *disk)
{
	int file = disk->ops->open(disk, SPARE_NAME, true, &reserve->bytes);

	reserve->disk = disk;
	reserve->file = file < 0 ? -1 : file;
	if (file < 0)
		reserve->bytes = 0;
	/* what is no file, disk_reserve_grow() replaces, but for a directory: -EISDIR */
	return file == -ENOENT || file == -EBADMSG || file >= 0 ? 0 : file;
}

int disk_reserve_check(struct disk *disk)
{
	uint64_t bytes;
	int file = disk->ops->open(disk, SPARE_NAME, true, &bytes);

	if (file >= 0)
		disk->ops->close(disk, file);
	return file == -EISDIR ? file : 0;
}

void disk_reserve_close(struct disk_reserve *reserve)
{
	disk_close(reserve->disk, &reserve->file);
}

static int disk_reserve_write(struct disk_reserve *reserve, uint64_t to)
{
	uint64_t at = reserve->bytes;

	while (at < to) {
		size_t count = to - at < ZEROS_BYTES ? (size_t)(to - at) : ZEROS_BYTES;
		int64_t written = reserve->disk->ops->write(reserve->disk, reserve->file,
		                                            disk_reserve_zeros, count, at);

		if (written <= 0) {
			/*
			 * to its old size; if that fails too, the file is larger than
			 * reserve->bytes
			 */
			(void)reserve->disk->ops->truncate(reserve->disk, reserve->file,
			                                   reserve->bytes);
			return written < 0 ? (int)written : -ENOSPC;
		}
		at += (uint64_t)written;
	}
	reserve->bytes = to;
	return 0;
}

int disk_reserve_grow(struct disk_reserve *reserve, uint64_t bytes, uint64_t more)
{
	if (reserve->bytes >= bytes)
		return 0;
	if (reserve->file < 0) {
		int file = reserve->disk->ops->create(reserve->disk, SPARE_NAME);

		if (file < 0)
			return file;
		reserve->file = file;
	}
	return more > bytes && disk_reserve_write(reserve, more) == 0
	               ? 0
	               : disk_reserve_write(reserve, bytes);
}

bool disk_reserve_give(struct disk_reserve *reserve, uint64_t bytes)
{
	uint64_t left = reserve->bytes > bytes ? reserve->bytes - bytes : 0;

	if (reserve->bytes == 0 ||
	    reserve->disk->ops->truncate(reserve->disk, reserve->file, left) < 0)
		return false;
	reserve->bytes = left;
	return true;
}
