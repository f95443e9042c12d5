/* SPDX-License-Identifier: MIT */
/*
 * Opens a journal on any disk (disk.h) with any clock (wall_timer.h). Public calls: open.c,
 * change.c, take.c, query.c, backup.c. A caller adds its transaction, changes made together, to the
 * open batch; a leader writes, syncs and applies it (writer.c). Only stable tasks are delivered; a
 * refused change has no effect.
 */
#ifndef JOURNAL_OPEN_H
#define JOURNAL_OPEN_H

#include "journal/state.h"

/* With defaults for 0, and checked. 0, -EINVAL or -E2BIG. */
int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config);

/*
 * Disk and timer stay the caller's; `config` is journal_read_config()'s. Not `threaded`: no keeper.
 */
int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct wall_timer *timer,
                 const struct timerhub_journal_config *config, bool threaded);

#endif
