/* SPDX-License-Identifier: MIT */
/*
 * Shows the progress of timerhub-journal. See progress.h. progress_begin() replaces the disk's
 * table of calls. Each call in the new table counts the bytes and then calls the disk's original
 * function. Only one disk of the tool uses the counting calls.
 */
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
