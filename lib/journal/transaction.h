/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a transaction may begin. Sets the state of the transaction's tasks when the
 * transaction begins, and when its batch was written or refused. The caller of each function except
 * transaction_bytes() holds the lock.
 */
#ifndef JOURNAL_TRANSACTION_H
#define JOURNAL_TRANSACTION_H

#include "journal/state.h"

/* Returns the bytes of a transaction's records. */
size_t transaction_bytes(const struct transaction *transaction);

/*
 * Returns 0 if the transaction may begin now, or 1 if it must wait for the batch `*ret_batch`. If
 * the transaction is refused, returns an error and stores the index of the refused change in
 * `*ret_index`.
 */
int transaction_check(struct timerhub_journal *journal, struct transaction *transaction,
                      uint32_t *ret_batch, unsigned *ret_index);

/*
 * Add a transaction to the open batch. The caller must have held the lock since a
 * transaction_check() that returned 0.
 */
void transaction_begin(struct timerhub_journal *journal, struct transaction *transaction);

/*
 * End the transactions of a list. If `result` is 0, the transactions' batch was written to the log
 * at `position`. Any other `result` is the error of the disk that refused the transactions.
 */
void transaction_end(struct timerhub_journal *journal, struct transaction *first, int result,
                     const struct log_position *position);

#endif
