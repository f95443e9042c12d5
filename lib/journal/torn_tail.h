/* SPDX-License-Identifier: MIT */
/* The last segment behind its last good record. */
#ifndef JOURNAL_TORN_TAIL_H
#define JOURNAL_TORN_TAIL_H

#include "journal/log.h"
#include "journal/reader.h"

/*
 * Where the record `expected` is missing: 0 if a torn tail may begin here, -EBADMSG with the fault,
 * or a disk's error.
 */
int torn_tail_judge(struct reader *reader, uint64_t expected, bool last, const char **ret_fault);

/*
 * And makes the segment the log's last, for appends. From `doubt_offset` on its records may not be
 * stable: they are written again and synced.
 */
int torn_tail_cut(struct log *log, struct reader *reader, uint64_t doubt_offset);

#endif
