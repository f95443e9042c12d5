/* SPDX-License-Identifier: MIT */
/*
 * Writes transactions to the disk by group commit: callers add transactions to the open batch, and
 * the leader writes the batch. The comment of writer.c describes the leader.
 */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include "journal/state.h"

/*
 * Add a transaction to the open batch, and lead if no thread does. The lock is not held. Returns 0
 * and the batch's number, or an error and the index of the refused change. Returns -EAGAIN if the
 * call would have to wait and `may_wait` is false.
 */
int writer_make(struct timerhub_journal *journal, struct transaction *transaction, bool may_wait,
                unsigned *ret_index, uint32_t *ret_number);

/*
 * Wait until the batch of that number is finished. The calling thread may become the leader. The
 * lock is not held.
 */
void writer_await(struct timerhub_journal *journal, uint32_t number);

/*
 * Ask the keeper to write, within some milliseconds, the records that no caller waits for. Returns
 * whether the caller must release the lock and wake the keeper by eventcount_wake(&journal->work,
 * 1). The lock is held.
 */
bool writer_remind(struct timerhub_journal *journal);

/*
 * Does the work of writer_remind(), but the keeper writes at once. If a thread leads already, it
 * finds the work before it stops, so the keeper is not woken.
 */
bool writer_kick(struct timerhub_journal *journal);

/* Returns whether the open batch must be written. The lock is held. */
bool writer_must_write(struct timerhub_journal *journal);

/*
 * Make the calling thread the leader, if there is no leader. If the call returns true, the thread
 * releases the lock and calls writer_lead(). The lock is held.
 */
bool writer_may_lead(struct timerhub_journal *journal);

/*
 * Write the open batch. Afterwards make a waiting caller the leader, or leave other work to the
 * keeper. The argument `keeper` is true in the keeper, which also compacts. The lock is not held.
 */
void writer_lead(struct timerhub_journal *journal, bool keeper);

/*
 * Write the open batch and do one step of compaction. Returns whether there was work. Tests without
 * threads use this function.
 */
bool writer_pass(struct timerhub_journal *journal);

#endif
