/* SPDX-License-Identifier: MIT */
/*
 * Ended transactions of submit, which no thread waits for: a list, and an eventfd that is readable
 * while the list is not empty. Under the journal's lock.
 */
#ifndef JOURNAL_COMPLETIONS_H
#define JOURNAL_COMPLETIONS_H

#include "journal/batch.h"

struct completions {
	struct transaction *first;
	struct transaction *last;
	int fd;    /* -1: no caller has asked for it */
	bool rung; /* the fd has been, or is about to be, made readable */
};

void completions_init(struct completions *completions);

/* Free the requests that no caller has taken. */
void completions_fini(struct completions *completions);

/* Returns the fd, made at the first call; or an error. */
int completions_fd(struct completions *completions);

/* Add a transaction that has ended. */
void completions_put(struct completions *completions, struct transaction *transaction);

/* Must the fd be made readable? Then completions_ring(), without the lock. */
bool completions_must_ring(struct completions *completions);

void completions_ring(const struct completions *completions);

/*
 * Returns the first transaction, which is the caller's to free; NULL: there is none, and the fd is
 * clear.
 */
struct transaction *completions_take(struct completions *completions);

#endif
