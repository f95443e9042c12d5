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
	LOG_SYNC = 1,  /* return only when they are stable */
	LOG_SPARE = 2, /* without room, use the spare */
};

/*
 * Sealed in place; they must fit in a segment. `how`: bits of enum log_how. -EIO: failed; another
 * error: nothing was added.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position);

/* Does a result of log_append() mean so? */
bool log_is_full(int result);

/* In the spare. 0 or a disk's error. */
int log_reserve(struct log *log, uint64_t bytes);

/* To about `bytes`, if the spare is much larger. */
void log_release(struct log *log, uint64_t bytes);

/* 0, or -EIO: failed. */
int log_sync(struct log *log);

/*
 * At the end of a segment or the log: no zeros, all stable, watermark synced. After an error but
 * -EIO the log is unchanged.
 */
int log_trim(struct log *log);

#endif
