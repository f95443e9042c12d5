/* SPDX-License-Identifier: MIT */
/*
 * Keeps a file of zeros that reserves room on the disk for records that end tasks. So a worker can
 * acknowledge a task although the disk is full. The file grows before a put, and is cut when the
 * disk refuses a record. The spare is not synced, because a file system allocates room when it
 * accepts a write.
 */
#ifndef JOURNAL_SPARE_H
#define JOURNAL_SPARE_H

#include "journal/disk.h"

struct spare {
	struct disk *disk;
	int file; /* descriptor of the spare; -1: no file yet */
	uint64_t bytes;
};

/* Open the file of an earlier process, if any. Returns 0 or an error. */
int spare_open(struct spare *spare, struct disk *disk);

void spare_close(struct spare *spare);

/*
 * Grow the file to `more` bytes. If the disk refuses, grow the file to `bytes`. Returns 0, or an
 * error of the disk, after which the size is unchanged.
 */
int spare_grow(struct spare *spare, uint64_t bytes, uint64_t more);

/*
 * Shrink the file by `bytes`, or to 0 if it is smaller. Returns false if the file is empty or the
 * disk refuses.
 */
bool spare_give(struct spare *spare, uint64_t bytes);

#endif
