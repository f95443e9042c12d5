/* SPDX-License-Identifier: MIT */
/*
 * The journal from outside: opened on any disk, and under any clock. The calls are in journal.c
 * (open, close), change.c, take.c and query.c.
 *
 * Changes that are made together are a transaction. Its caller adds it, with its records, to the
 * open batch. A leader writes and syncs that batch, applies its transactions to the tasks in
 * memory, and wakes their callers. The next batch fills in that time. So only stable tasks are
 * delivered, and a change that the disk refused has no effect.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "journal/state.h"

/* Zeroed fields are replaced by defaults, and all are checked. 0, -EINVAL, -E2BIG. */
int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config);

/* Open on any disk and timer, which stay the caller's; `config` from journal_read_config(). */
int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct wall_timer *timer,
                 const struct timerhub_journal_config *config, bool threaded);

#endif
