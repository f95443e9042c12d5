/* SPDX-License-Identifier: MIT */
/*
 * Copy a journal. The copy holds all changes acknowledged before it began. The journal may be in
 * use. The log grows only at its end, so the bytes to copy do not change. If compaction drops a
 * first segment, the copy begins again.
 */
#ifndef JOURNAL_BACKUP_H
#define JOURNAL_BACKUP_H

#include <stdbool.h>

#include "journal/disk.h"

/*
 * Copy the journal on `from` into the empty directory `to`. Returns 0, -ENOTEMPTY, -EBADMSG for a
 * damaged journal, -EBUSY if segments were dropped in every try, or an error of either disk. A copy
 * that was broken off is refused by open. `*ret_by_copy`: the error is about `to`.
 */
int backup_copy(struct disk *from, const char *to, bool *ret_by_copy);

/* As backup_copy(), to a directory that is open. */
int backup_to(struct disk *from, struct disk *to);

#endif
