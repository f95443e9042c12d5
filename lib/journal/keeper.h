/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops the keeper, the journal's own thread. The keeper does the work that no caller
 * waits for.
 */
#ifndef JOURNAL_KEEPER_H
#define JOURNAL_KEEPER_H

#include "journal/state.h"

/* Start the keeper. Returns 0 or -EAGAIN. */
int keeper_start(struct timerhub_journal *journal);

/* End the keeper, after it has written all batches. */
void keeper_stop(struct timerhub_journal *journal);

#endif
