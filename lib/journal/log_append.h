/* SPDX-License-Identifier: MIT */
/*
 * Appends records to the last segment, and keeps the spare. What a refused write has left is cut
 * off before the call returns. After a failed sync, or an error that log_answer() does not list,
 * the disk is unknown, and nothing is written any more. Zeros are written ahead of the records:
 * over them a sync needs no new size or blocks.
 */
#ifndef JOURNAL_LOG_APPEND_H
#define JOURNAL_LOG_APPEND_H

#include "journal/log.h"

enum log_how {
	LOG_SYNC = 1,  /* log_append() returns only when the records are stable */
	LOG_SPARE = 2, /* if the disk has no room, log_append() uses the spare */
};

/*
 * Sealed in place; they must fit in a segment. `how`: bits of enum log_how. -EIO: failed; another
 * error: nothing was added.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position);

/* Returns whether a result of log_append() means that the disk is full. */
bool log_is_full(int result);

/* In the spare. 0 or a disk's error. */
int log_reserve(struct log *log, uint64_t bytes);

/* Shrink the spare to about `bytes`, if the spare is much larger. */
void log_release(struct log *log, uint64_t bytes);

/* Make all written records stable. Returns 0, or -EIO if the log has failed. */
int log_sync(struct log *log);

/*
 * At the end of a segment or the log: no zeros, all stable, watermark synced. After an error but
 * -EIO the log is unchanged.
 */
int log_trim(struct log *log);

#endif
