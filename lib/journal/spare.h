/* SPDX-License-Identifier: MIT */
/*
 * Room that is kept on the disk for the records that end tasks, as a file of zeros: what is put can
 * always be acknowledged, although the disk is full by then. Grown before a put, cut when the disk
 * refuses a record. Not synced: a file system that has accepted a write has set the room aside.
 */
#ifndef JOURNAL_SPARE_H
#define JOURNAL_SPARE_H

#include "journal/disk.h"

struct spare {
	struct disk *disk;
	int file; /* -1: none yet */
	uint64_t bytes;
};

/* Find what an earlier process left. 0 or an error. */
int spare_open(struct spare *spare, struct disk *disk);

void spare_close(struct spare *spare);

/*
 * Have at least `bytes`, better `more`. 0; or why the disk refuses even the first, and then the
 * spare is as it was.
 */
int spare_grow(struct spare *spare, uint64_t bytes, uint64_t more);

/* Give so many bytes back to the disk, or all there are. False: there are none, or it refuses. */
bool spare_give(struct spare *spare, uint64_t bytes);

#endif
