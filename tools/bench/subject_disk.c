/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of the disk: one thread writes zeros with the size of a small record and syncs
 * the file. "sync-append" extends the file by one record, as a log does, "sync-batch" by 32 before
 * each sync, as when 64 threads put tasks. "sync-overwrite" writes to
 * blocks that were written before. A durable task needs two such writes: for its put and for its
 * end.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "clocks.h"
#include "disk_folder.h"
#include "subject.h"

#define FILE_BYTES (16 << 20)
#define CHUNK_BYTES 65536
#define RECORD_BYTES 160 /* bytes of a log's record with DURABLE_BYTES of data */
#define BATCH_RECORDS 32

static int file;
static off_t offset;
static off_t end; /* size of the file that is written again and again, or 0 if it grows */
static size_t bytes = RECORD_BYTES;
static char zeros[CHUNK_BYTES];

static void sync_open(const struct subject_setup *setup)
{
	(void)setup;
	if (chdir(folder_make()) < 0)
		subject_fail("chdir", errno);
	file = open("log", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		subject_fail("open", errno);
}

static void batch_open(const struct subject_setup *setup)
{
	bytes = (size_t)RECORD_BYTES * BATCH_RECORDS;
	sync_open(setup);
}

static void overwrite_open(const struct subject_setup *setup)
{
	sync_open(setup);
	for (end = 0; end < FILE_BYTES; end += CHUNK_BYTES)
		if (pwrite(file, zeros, CHUNK_BYTES, end) != CHUNK_BYTES)
			subject_fail("pwrite", errno);
	if (fsync(file) < 0)
		subject_fail("fsync", errno);
}

static int sync_arm(uint32_t timer, uint64_t delay_ns)
{
	(void)timer;
	(void)delay_ns;
	if (end > 0 && offset + (off_t)bytes > end)
		offset = 0;
	if (pwrite(file, zeros, bytes, offset) != (ssize_t)bytes || fdatasync(file) < 0)
		return -errno;
	offset += (off_t)bytes;
	return 0;
}

static int sync_finish(void)
{
	return sync_arm(0, 0);
}

SUBJECT(sync_append, "sync-append", "pwrite at the end of a file, and fdatasync",
        CAN_PUT_DURABLY | CAN_FINISH_DURABLY, .open = sync_open, .arm = sync_arm,
        .finish = sync_finish)

SUBJECT(sync_batch, "sync-batch", "pwrite of 32 records at the end of a file, and fdatasync",
        CAN_PUT_DURABLY, .open = batch_open, .arm = sync_arm)

SUBJECT(sync_overwrite, "sync-overwrite", "pwrite over the data of a file, and fdatasync",
        CAN_PUT_DURABLY | CAN_FINISH_DURABLY, .open = overwrite_open, .arm = sync_arm,
        .finish = sync_finish)
