/* SPDX-License-Identifier: MIT */
/*
 * Up to which sequence number the log is stable, in a file beside it: written after each sync, so
 * it covers stable records only, and before callers return; it outlives the process. Synced only at
 * a segment's and the journal's end. A log that ends before it has lost acknowledged records. The
 * file is created once the first segment's name is stable: with it and no segment, all segments are
 * lost. In version 1 of the format it is empty.
 */
#ifndef JOURNAL_WATERMARK_H
#define JOURNAL_WATERMARK_H

#include "journal/disk.h"

#define WATERMARK_NAME "begun"
#define WATERMARK_BYTES 24u

/* `*ret_sequence` is 0 without the file or a good watermark. 0 or an error. */
int watermark_read(struct disk *disk, bool *ret_is_there, uint64_t *ret_sequence);

/*
 * Creates the file unless `is_there`, writes `sequence`, and syncs both file and directory. Returns
 * the descriptor or an error.
 */
int watermark_open(struct disk *disk, bool is_there, uint64_t sequence);

/* Without a sync. After an error the file may have no good one. */
int watermark_write(struct disk *disk, int file, uint64_t sequence);

#endif
