/* SPDX-License-Identifier: MIT */
/*
 * Keeps a file of zeros that reserves room on the disk for records that end tasks. So a worker can
 * acknowledge a task although the disk is full. The file grows before a put, and is cut when the
 * disk refuses a record. The spare is not synced, because a file system allocates room when it
 * accepts a write.
 */
#ifndef JOURNAL_DISK_RESERVE_H
#define JOURNAL_DISK_RESERVE_H

#include "journal/disk.h"

struct disk_reserve {
	struct disk *disk;
	int file; /* descriptor of the spare; -1: no file yet */
	uint64_t bytes;
};

/* Open the file of an earlier process, if any. Returns 0 or an error. */
int disk_reserve_open(struct disk_reserve *reserve, struct disk *disk);

void disk_reserve_close(struct disk_reserve *reserve);

/*
 * Grow the file to `more` bytes. If the disk refuses, grow the file to `bytes`. Returns 0, or an
 * error of the disk, after which the size is unchanged.
 */
int disk_reserve_grow(struct disk_reserve *reserve, uint64_t bytes, uint64_t more);

/*
 * Shrink the file by `bytes`, or to 0 if it is smaller. Returns false if the file is empty or the
 * disk refuses.
 */
bool disk_reserve_give(struct disk_reserve *reserve, uint64_t bytes);

#endif
