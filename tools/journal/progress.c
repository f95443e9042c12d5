/* SPDX-License-Identifier: MIT */
/* See progress.h. Counts the bytes under the disk's calls; only one disk of the tool. */
#include "progress.h"

#include <console.h>

#define MB 1e6

static const struct disk_ops *ops;
static struct disk_ops counting;
static uint64_t read_bytes, written_bytes;

static int64_t count(uint64_t *bytes, int64_t moved)
{
	*bytes += moved > 0 ? (uint64_t)moved : 0;
	console_work("%.1f MB read, %.1f MB written", (double)read_bytes / MB,
	             (double)written_bytes / MB);
	return moved;
}

static int64_t progress_read(struct disk *disk, int file, void *bytes, size_t size, uint64_t offset)
{
	return count(&read_bytes, ops->read(disk, file, bytes, size, offset));
}

static int64_t progress_write(struct disk *disk, int file, const void *bytes, size_t size,
                              uint64_t offset)
{
	return count(&written_bytes, ops->write(disk, file, bytes, size, offset));
}

void progress_begin(struct disk *disk, const char *command)
{
	ops = disk->ops;
	counting = *ops;
	counting.read = progress_read;
	counting.write = progress_write;
	disk->ops = &counting;
	console_work_begin(command);
}
