/* SPDX-License-Identifier: MIT */
/* The journal's own thread. It does the work that no caller waits for. */
#ifndef JOURNAL_KEEPER_H
#define JOURNAL_KEEPER_H

#include "journal/state.h"

/* 0 or -EAGAIN. */
int keeper_start(struct timerhub_journal *journal);

/* Returns when all batches are written. */
void keeper_stop(struct timerhub_journal *journal);

#endif
