/* SPDX-License-Identifier: MIT */
/*
 * Changes: the decisions whether a request may be made, how its tasks are while it is in flight,
 * and how they end when its batch is written, or refused. The lock is held, except in
 * request_bytes().
 */
#ifndef JOURNAL_REQUEST_H
#define JOURNAL_REQUEST_H

#include "journal/state.h"

/* Returns the bytes of all of a request's records. */
size_t request_bytes(const struct request *request);

/*
 * 0: it may begin now; 1: it must wait for the batch `*ret_batch`; or why it cannot be made, and
 * `*ret_index`: which change is refused.
 */
int request_check(struct timerhub_journal *journal, struct request *request, uint32_t *ret_batch,
                  unsigned *ret_index);

/* Let a checked request gather, in the same hold of the lock. */
void request_begin(struct timerhub_journal *journal, struct request *request);

/* The requests of this list are written, from `place` on; or refused, `result` says why. */
void request_end(struct timerhub_journal *journal, struct request *first, int result,
                 const struct log_place *place);

#endif
