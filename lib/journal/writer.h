/* SPDX-License-Identifier: MIT */
/* Group commit: callers add to the open batch, a leader writes it; see writer.c. */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include "journal/state.h"

/*
 * Without a leader, and with `may_wait`, this thread leads. Without the lock. 0 and the batch's
 * number, or an error and the refused change's index; -EAGAIN instead of a wait.
 */
int writer_make(struct timerhub_journal *journal, struct transaction *transaction, bool may_wait,
                unsigned *ret_index, uint32_t *ret_number);

/* Perhaps as its leader. Without the lock. */
void writer_await(struct timerhub_journal *journal, uint32_t number);

/*
 * What nobody waits for, within some milliseconds. True: release the lock, and
 * eventcount_wake(&journal->keeper.work, 1). Under the lock.
 */
bool writer_remind(struct timerhub_journal *journal);

/*
 * At once. True: wake the keeper; not with a leader, who finds the work before he stops. Under the
 * lock.
 */
bool writer_kick(struct timerhub_journal *journal);

/* Must the open batch be written? Under the lock. */
bool writer_must_write(struct timerhub_journal *journal);

/* If there is none. True: release the lock, and call writer_lead(). Under the lock. */
bool writer_may_lead(struct timerhub_journal *journal);

/*
 * The open batch; then the lead goes to who waits for the next, or the keeper is woken if there is
 * work. `keeper`: this is he, who also compacts. Without the lock.
 */
void writer_lead(struct timerhub_journal *journal, bool keeper);

/* A batch and a step of compaction, in tests without a keeper. Returns whether there was work. */
bool writer_pass(struct timerhub_journal *journal);

#endif
