/* SPDX-License-Identifier: MIT */
/*
 * Keeps the outcomes of timerhub_journal_submit() until a caller takes them, and an eventfd that is
 * readable while the list has outcomes. The caller of each function holds the journal's lock,
 * except for completions_ring().
 */
#ifndef JOURNAL_COMPLETIONS_H
#define JOURNAL_COMPLETIONS_H

#include "journal/write_batch.h"

struct completions {
	struct transaction *first;
	struct transaction *last;
	int fd;    /* -1 until a caller asks for the fd */
	bool rung; /* the fd has been, or is about to be, made readable */
};

void completions_init(struct completions *completions);

/* Free the requests that no caller has taken. */
void completions_fini(struct completions *completions);

/* Returns the fd, which the first call creates, or an error. */
int completions_fd(struct completions *completions);

/* Add a transaction that has ended. */
void completions_put(struct completions *completions, struct transaction *transaction);

/*
 * Returns whether the fd must be made readable. If completions_must_ring() returns true, the caller
 * releases the lock and calls completions_ring().
 */
bool completions_must_ring(struct completions *completions);

void completions_ring(const struct completions *completions);

/*
 * Returns the first transaction, which the caller frees. If the list is empty, clears the fd and
 * returns NULL.
 */
struct transaction *completions_take(struct completions *completions);

#endif
