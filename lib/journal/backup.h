/* SPDX-License-Identifier: MIT */
/*
 * A copy of a journal, also of one in use, that holds all that was acknowledged before it was
 * begun. The log only grows at its end, so what a look finds stays as it is while it is copied, but
 * for first segments that are dropped: then the copy begins again.
 */
#ifndef JOURNAL_BACKUP_H
#define JOURNAL_BACKUP_H

#include <stdbool.h>

#include "journal/disk.h"

/*
 * Copy the journal on `from` into the empty directory `to`. 0; -ENOTEMPTY; -EBADMSG: the journal is
 * damaged; -EBUSY: its segments were dropped again and again; else from either disk. A copy that
 * was broken off is refused by open. `*ret_by_copy`: the error is about `to`.
 */
int backup_copy(struct disk *from, const char *to, bool *ret_by_copy);

/* As backup_copy(), to a directory that is open. */
int backup_to(struct disk *from, struct disk *to);

#endif
