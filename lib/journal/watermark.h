/* SPDX-License-Identifier: MIT */
/*
 * Stores the watermark in a file beside the log: the sequence number up to which the log is stable.
 * The leader writes the watermark after each sync of the log, before callers return. Because the
 * watermark is written after the sync, it covers only stable records. The file keeps the watermark
 * even if the process dies. The leader syncs the watermark only at the end of a segment and of the
 * journal. If a log ends before the watermark, acknowledged records are lost.
 *
 * The watermark's file is created only after the name of the first segment is stable. Therefore a
 * directory with a watermark's file and no segment has lost all segments. In version 1 of the file
 * format, the watermark's file is always empty.
 */
#ifndef JOURNAL_WATERMARK_H
#define JOURNAL_WATERMARK_H

#include "journal/disk.h"

#define WATERMARK_NAME "begun"
#define WATERMARK_BYTES 24u

/*
 * Read the watermark. `*ret_sequence` is 0 if the file does not exist or has no good watermark.
 * Returns 0 or an error.
 */
int watermark_read(struct disk *disk, bool *ret_is_there, uint64_t *ret_sequence);

/*
 * Open the watermark's file. If `is_there` is false, create the file. Write the value `sequence` as
 * the watermark, and sync the file and the directory. Returns the file's descriptor, or an error.
 */
int watermark_open(struct disk *disk, bool is_there, uint64_t sequence);

/*
 * Write the watermark, without a sync. Returns 0, or an error, after which the file may have no
 * good watermark.
 */
int watermark_write(struct disk *disk, int file, uint64_t sequence);

#endif
