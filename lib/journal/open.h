/* SPDX-License-Identifier: MIT */
/*
 * Opens a journal on any disk (disk.h) and with any clock (wall_timer.h), so that tests can
 * simulate disk and clock. The public calls are in open.c (open, close), change.c, take.c,
 * query.c and backup.c.
 *
 * A caller adds its transaction, one or more changes that are made together, to the open batch. A
 * leader writes and syncs the batch, and applies it to the tasks in memory (writer.c). Only stable
 * tasks are delivered. A change that the disk refuses has no effect.
 */
#ifndef JOURNAL_OPEN_H
#define JOURNAL_OPEN_H

#include "journal/state.h"

/*
 * Copy a caller's config, replace fields of 0 by their defaults, and check all fields. Returns 0,
 * -EINVAL or -E2BIG.
 */
int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config);

/*
 * Open a journal on a disk and a timer, which still belong to the caller. `config` comes from
 * journal_read_config(). If `threaded` is false, no keeper runs.
 */
int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct wall_timer *timer,
                 const struct timerhub_journal_config *config, bool threaded);

#endif
