/* SPDX-License-Identifier: MIT */
/*
 * Copies a journal, perhaps in use: all that was acknowledged before the call. The log grows only
 * at its end, so copied bytes stay right; if compaction drops the first segment, the copy begins
 * again.
 */
#ifndef JOURNAL_BACKUP_H
#define JOURNAL_BACKUP_H

#include <stdbool.h>

#include "journal/disk.h"

/*
 * Into the empty directory `to`. 0, -ENOTEMPTY, -EBADMSG (damaged), a disk's error, or -EBUSY if
 * compaction dropped a segment during every attempt; `*ret_by_copy`: the error is of `to`. An
 * incomplete copy is refused by timerhub_journal_open().
 */
int backup_copy(struct disk *from, const char *to, bool *ret_by_copy);

/* The same, with `to` open already. */
int backup_to(struct disk *from, struct disk *to);

#endif
