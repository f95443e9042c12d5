/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a transaction may begin, and sets the state of its tasks while it is in flight
 * and after its batch was written or refused. The caller of each function holds the lock, except
 * for transaction_bytes().
 */
#ifndef JOURNAL_TRANSACTION_H
#define JOURNAL_TRANSACTION_H

#include "journal/state.h"

/* Returns the bytes of a transaction's records. */
size_t transaction_bytes(const struct transaction *transaction);

/*
 * Returns 0 if the transaction may begin now, or 1 if it must wait for the batch `*ret_batch`. If
 * the transaction is refused, returns an error, and `*ret_index` is the index of the refused
 * change.
 */
int transaction_check(struct timerhub_journal *journal, struct transaction *transaction,
                      uint32_t *ret_batch, unsigned *ret_index);

/* Add a checked transaction to the open batch. The caller has held the lock since the check. */
void transaction_begin(struct timerhub_journal *journal, struct transaction *transaction);

/*
 * End the transactions of a list. If the result is 0, the transactions were written at `position`.
 * Any other result is the error of the disk that refused them.
 */
void transaction_end(struct timerhub_journal *journal, struct transaction *first, int result,
                     const struct log_position *position);

#endif
