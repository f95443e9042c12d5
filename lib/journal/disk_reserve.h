/* SPDX-License-Identifier: MIT */
/*
 * The spare, a file of zeros: room for records that end tasks, so that a worker can acknowledge on
 * a full disk. It grows before a put, and shrinks when the disk refuses a record, and before
 * compaction. Not synced: room is allocated when a write is accepted.
 */
#ifndef JOURNAL_DISK_RESERVE_H
#define JOURNAL_DISK_RESERVE_H

#include "journal/disk.h"

struct disk_reserve {
	struct disk *disk;
	int file; /* descriptor of the spare, or -1 before the file exists */
	uint64_t bytes;
};

/* That an earlier process has left, if any. 0 or an error. */
int disk_reserve_open(struct disk_reserve *reserve, struct disk *disk);

/* -EISDIR if disk_reserve_open() would say so, else 0. */
int disk_reserve_check(struct disk *disk);

void disk_reserve_close(struct disk_reserve *reserve);

/*
 * If it is smaller than `bytes`, to `more`, or to `bytes` if the disk refuses. After an error its
 * size is unchanged.
 */
int disk_reserve_grow(struct disk_reserve *reserve, uint64_t bytes, uint64_t more);

/* By `bytes`, down to 0. False: empty, or refused. */
bool disk_reserve_give(struct disk_reserve *reserve, uint64_t bytes);

#endif
