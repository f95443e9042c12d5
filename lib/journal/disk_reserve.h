/* SPDX-License-Identifier: MIT */
/*
 * Keeps the spare, a file of zeros that reserves room on the disk for records that end tasks. With
 * the spare, a worker can acknowledge a task although the disk is full. The spare grows before a
 * put. The spare shrinks when the disk refuses a record, and before compaction. The spare is not
 * synced, because a file system allocates room when it accepts a write.
 */
#ifndef JOURNAL_DISK_RESERVE_H
#define JOURNAL_DISK_RESERVE_H

#include "journal/disk.h"

struct disk_reserve {
	struct disk *disk;
	int file; /* descriptor of the spare, or -1 before the file exists */
	uint64_t bytes;
};

/* Open the spare that an earlier process has left, if there is one. Returns 0 or an error. */
int disk_reserve_open(struct disk_reserve *reserve, struct disk *disk);

void disk_reserve_close(struct disk_reserve *reserve);

/*
 * If the spare is smaller than `bytes`, grow the spare to the larger size `more`. If the disk
 * refuses this size, grow the spare to the size `bytes`. Returns 0 or an error of the disk. After
 * an error, the spare's size is unchanged.
 */
int disk_reserve_grow(struct disk_reserve *reserve, uint64_t bytes, uint64_t more);

/*
 * Shrink the spare by `bytes`, or to 0 if the spare is smaller than `bytes`. Returns false if the
 * spare is empty or the disk refuses.
 */
bool disk_reserve_give(struct disk_reserve *reserve, uint64_t bytes);

#endif
