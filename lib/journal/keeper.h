/* SPDX-License-Identifier: MIT */
/* The journal's own thread, for work that nobody waits for. */
#ifndef JOURNAL_KEEPER_H
#define JOURNAL_KEEPER_H

#include "journal/state.h"

/* Start the keeper. Returns 0 or -EAGAIN. */
int keeper_start(struct timerhub_journal *journal);

/* End the keeper, after it has written all batches. */
void keeper_stop(struct timerhub_journal *journal);

/* During a backup. Without the lock. */
void keeper_pause_compaction(struct timerhub_journal *journal);

/* And make up for it now, since the next change may be far. Without the lock. */
void keeper_resume_compaction(struct timerhub_journal *journal);

#endif
