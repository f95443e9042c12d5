/* SPDX-License-Identifier: MIT */
/*
 * The journal from outside: opened on any disk, and under any clock. The calls are in journal.c
 * (open, close), change.c, take.c and query.c.
 *
 * Changes that count together are a request. Its caller puts it, and its records, into the batch
 * that is gathering; a leader writes that batch out and syncs it, applies all its requests to the
 * tasks in memory, and then wakes their callers, while the next batch gathers. So nothing is
 * delivered that is not stable, and a change that the disk refused has never happened.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "journal/state.h"

/* Zeroed fields are replaced by defaults, and all are checked. 0, -EINVAL, -E2BIG. */
int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config);

/* Open on any disk and alarm, which stay the caller's; `config` from journal_read_config(). */
int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct alarm *alarm,
                 const struct timerhub_journal_config *config, bool threaded);

#endif
