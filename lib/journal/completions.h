/* SPDX-License-Identifier: MIT */
/*
 * Keeps the outcomes of timerhub_journal_submit() in a list until a caller takes them. While the
 * list has outcomes, an eventfd is readable. The caller of each function except completions_ring()
 * holds the journal's lock.
 */
#ifndef JOURNAL_COMPLETIONS_H
#define JOURNAL_COMPLETIONS_H

#include "journal/write_batch.h"

struct completions {
	struct transaction *first;
	struct transaction *last;
	int fd;    /* the eventfd, or -1 until a caller asks for it */
	bool rung; /* a thread has made the fd readable, or is about to */
};

void completions_init(struct completions *completions);

/* Free the transactions whose outcomes no caller has taken. */
void completions_fini(struct completions *completions);

/* Returns the eventfd, or an error. The first call of completions_fd() creates the eventfd. */
int completions_fd(struct completions *completions);

/* Add a transaction that has ended to the list of outcomes. */
void completions_put(struct completions *completions, struct transaction *transaction);

/*
 * Returns whether the fd must be made readable. If the result is true, the caller releases the lock
 * and calls completions_ring().
 */
bool completions_must_ring(struct completions *completions);

void completions_ring(const struct completions *completions);

/*
 * Remove the first transaction from the list and return it. The caller frees the transaction. If
 * the list is empty, make the fd unreadable and return NULL.
 */
struct transaction *completions_take(struct completions *completions);

#endif
