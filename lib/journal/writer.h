/* SPDX-License-Identifier: MIT */
/*
 * Writes transactions to the disk by group commit. Callers add transactions to the open batch, and
 * the leader writes the batch. The comment at the beginning of writer.c describes the leader.
 */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include "journal/state.h"

/*
 * Add a transaction to the open batch. If there is no leader and `may_wait` is true, the calling
 * thread becomes the leader. The caller does not hold the journal's lock. Returns 0 and stores the
 * batch's number, or returns an error and stores the index of the refused change. If `may_wait` is
 * false and writer_make() would have to wait, returns -EAGAIN.
 */
int writer_make(struct timerhub_journal *journal, struct transaction *transaction, bool may_wait,
                unsigned *ret_index, uint32_t *ret_number);

/*
 * Wait until the batch with the number `number` is finished. The calling thread may become the
 * leader. The caller does not hold the journal's lock.
 */
void writer_await(struct timerhub_journal *journal, uint32_t number);

/*
 * Ask the keeper to write, within some milliseconds, the records that no caller waits for. Returns
 * whether the caller must release the lock and wake the keeper by eventcount_wake(&journal->work,
 * 1). The caller holds the journal's lock.
 */
bool writer_remind(struct timerhub_journal *journal);

/*
 * Ask the keeper to write at once. Returns whether the caller must wake the keeper. If there is a
 * leader, the keeper is not woken, because the leader finds the work before it stops. The caller
 * holds the journal's lock.
 */
bool writer_kick(struct timerhub_journal *journal);

/* Returns whether the open batch must be written. The caller holds the journal's lock. */
bool writer_must_write(struct timerhub_journal *journal);

/*
 * Make the calling thread the leader, if there is no leader. If writer_may_lead() returns true, the
 * calling thread releases the lock and calls writer_lead(). The caller holds the journal's lock.
 */
bool writer_may_lead(struct timerhub_journal *journal);

/*
 * Write the open batch as the leader, and give up the lead. If a caller waits for the next batch,
 * offer the lead to this caller. If no caller waits but there is work, wake the keeper. The
 * argument `keeper` is true if the calling thread is the keeper, which also compacts. The caller
 * does not hold the journal's lock.
 */
void writer_lead(struct timerhub_journal *journal, bool keeper);

/*
 * Write the open batch and do one step of compaction. Returns whether there was work. Journals
 * without a keeper, in tests, use writer_pass().
 */
bool writer_pass(struct timerhub_journal *journal);

#endif
