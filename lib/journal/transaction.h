/* SPDX-License-Identifier: MIT */
/*
 * May a transaction begin? And the state of its tasks when it begins, and when its batch was
 * written or refused. Under the lock, but for transaction_bytes().
 */
#ifndef JOURNAL_TRANSACTION_H
#define JOURNAL_TRANSACTION_H

#include "journal/state.h"

/* Returns the bytes of a transaction's records. */
size_t transaction_bytes(const struct transaction *transaction);

/* 0: now; 1: after the batch `*ret_batch`; or a refusal, of the change `*ret_index`. */
int transaction_check(struct timerhub_journal *journal, struct transaction *transaction,
                      uint32_t *ret_batch, unsigned *ret_index);

/* The lock was held since a transaction_check() of 0. */
void transaction_begin(struct timerhub_journal *journal, struct transaction *transaction);

/* A list of them: 0: written to the log at `position`; else the disk's refusal. */
void transaction_end(struct timerhub_journal *journal, struct transaction *first, int result,
                     const struct log_position *position);

#endif
