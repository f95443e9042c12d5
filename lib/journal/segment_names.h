/* SPDX-License-Identifier: MIT */
/* Which segment files a journal's directory has. */
#ifndef JOURNAL_SEGMENT_NAMES_H
#define JOURNAL_SEGMENT_NAMES_H

#include "journal/log.h"

/* Into an empty log, in order. 0, -ENOMEM, or a disk's error. */
int segment_names_list(struct log *log);

/* From the log's list; the files stay. */
void segment_names_forget_before(struct log *log, uint64_t oldest);

/* Removes segments before the log's first, and an unfinished new one. */
int segment_names_clean_up(const struct log *log);

/* A segment or a watermark: 1; 0; or a disk's error. */
int segment_names_find_journal(struct disk *disk);

#endif
