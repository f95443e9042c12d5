/* SPDX-License-Identifier: MIT */
/*
 * Stores the watermark, the sequence number up to which the log is stable, in a file beside the
 * log. The watermark is written after each sync of the log, before callers return. The watermark is
 * synced only at the end of a segment and of the journal. So the watermark names only stable
 * records, and survives the death of the process. A log that ends before the watermark has lost
 * acknowledged records.
 *
 * The watermark's file exists if a segment ever existed. So a directory with a watermark and no
 * segment has lost all segments. Version 1 left the file empty.
 */
#ifndef JOURNAL_WATERMARK_H
#define JOURNAL_WATERMARK_H

#include "journal/disk.h"

#define WATERMARK_NAME "begun"
#define WATERMARK_BYTES 24u

/*
 * Read the watermark. `*ret_sequence` is 0 if there is no file, or no good watermark in it. Returns
 * 0 or an error.
 */
int watermark_read(struct disk *disk, bool *ret_is_there, uint64_t *ret_sequence);

/* Open the file for writing, and create it if needed. Returns the file, or an error. */
int watermark_open(struct disk *disk, bool is_there, uint64_t sequence);

/*
 * Write the watermark, without a sync. Returns 0 or an error. After an error the file may hold no
 * good watermark.
 */
int watermark_write(struct disk *disk, int file, uint64_t sequence);

#endif
