/* SPDX-License-Identifier: MIT */
/*
 * The high-water mark: up to where the log is known to be stable, in a file beside the log. Written
 * after each sync of the log and before any caller is told of it; itself synced only at the end of
 * a segment and of the journal. So it never says too much, it survives the death of the process,
 * and a log that ends before the mark has lost acknowledged records.
 *
 * The file is there since the first segment is: a directory with a mark and no segment has lost
 * them all. Version 1 left it empty.
 */
#ifndef JOURNAL_MARK_H
#define JOURNAL_MARK_H

#include "journal/disk.h"

#define MARK_NAME "begun"
#define MARK_BYTES 24u

/* `*ret_sequence`: 0 if there is no file, or no good mark in it. 0 or an error. */
int mark_read(struct disk *disk, bool *ret_is_there, uint64_t *ret_sequence);

/* Open the file to write marks to, made if it is not there. Returns the file, or an error. */
int mark_open(struct disk *disk, bool is_there, uint64_t sequence);

/* Not synced. 0 or an error, after which there may be no good mark. */
int mark_write(struct disk *disk, int file, uint64_t sequence);

#endif
