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
 * Returns 0 if the transaction may begin now, or 1 if it must wait for the batch `*ret_batch`.
 * Otherwise returns an error, and `*ret_index` is the refused change.
 */
int transaction_check(struct timerhub_journal *journal, struct transaction *transaction,
                      uint32_t *ret_batch, unsigned *ret_index);

/* Add a checked transaction to the open batch, in the same hold of the lock. */
void transaction_begin(struct timerhub_journal *journal, struct transaction *transaction);

/* End the transactions of a list. With result 0 they were written at `position`, else refused. */
void transaction_end(struct timerhub_journal *journal, struct transaction *first, int result,
                     const struct log_position *position);

#endif
