/* SPDX-License-Identifier: MIT */
/*
 * Copies a journal, which may be in use. The copy has all changes that were acknowledged before the
 * call. The log grows only at its end, so the bytes to copy do not change. If compaction drops a
 * first segment, the copy begins again.
 */
#ifndef JOURNAL_BACKUP_H
#define JOURNAL_BACKUP_H

#include <stdbool.h>

#include "journal/disk.h"

/*
 * Copy the journal on `from` into the empty directory `to`. Returns 0, -ENOTEMPTY, -EBADMSG for a
 * damaged journal, -EBUSY if each attempt found that a segment had been dropped, or an error of
 * either disk. `*ret_by_copy` says whether the error is about `to`. Open refuses an incomplete
 * copy.
 */
int backup_copy(struct disk *from, const char *to, bool *ret_by_copy);

/* Does the work of backup_copy() for a destination directory that is open already. */
int backup_to(struct disk *from, struct disk *to);

#endif
