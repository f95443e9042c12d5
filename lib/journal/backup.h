/* SPDX-License-Identifier: MIT */
/*
 * Copies a journal, which may be in use during the copy. The copy has all changes that were
 * acknowledged before the call of the backup. The log grows only at its end, so the copied bytes do
 * not change. If compaction drops the first segment during the copy, the backup begins again.
 */
#ifndef JOURNAL_BACKUP_H
#define JOURNAL_BACKUP_H

#include <stdbool.h>

#include "journal/disk.h"

/*
 * Copy the journal from the disk `from` into the empty directory `to`. Returns 0, or -ENOTEMPTY if
 * `to` is not empty, or -EBADMSG if the journal is damaged, or an error of a disk. Returns -EBUSY
 * if compaction dropped a segment during every attempt. Stores in `*ret_by_copy` whether the error
 * came from the directory `to`. timerhub_journal_open() refuses an incomplete copy.
 */
int backup_copy(struct disk *from, const char *to, bool *ret_by_copy);

/* Copy the journal on `from` to the disk `to`, as backup_copy() does, but `to` is open already. */
int backup_to(struct disk *from, struct disk *to);

#endif
