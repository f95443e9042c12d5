/* SPDX-License-Identifier: MIT */
/*
 * The outcomes of timerhub_journal_submit(), until taken; an eventfd is readable meanwhile. Under
 * the journal's lock, but for completions_ring().
 */
#ifndef JOURNAL_COMPLETIONS_H
#define JOURNAL_COMPLETIONS_H

#include "journal/write_batch.h"

struct completions {
	struct transaction *first;
	struct transaction *last;
	int fd;      /* the eventfd, or -1 until a caller asks for it */
	bool rung;   /* a thread has made the fd readable, or is about to */
	bool wanted; /* a submit was refused: after the next batch, ring: it may repeat */
};

void completions_init(struct completions *completions);

void completions_fini(struct completions *completions);

/* Closes only the fd, as a forked child does. */
void completions_leave(const struct completions *completions);

/* Returns the eventfd, or an error. The first call of completions_fd() creates the eventfd. */
int completions_fd(struct completions *completions);

/* Add a transaction that has ended to the list of outcomes. */
void completions_put(struct completions *completions, struct transaction *transaction);

/* True: release the lock, and call completions_ring(). */
bool completions_must_ring(struct completions *completions);

void completions_ring(const struct completions *completions);

/* The first, which the caller frees; NULL, with the fd unreadable, if there is none. */
struct transaction *completions_take(struct completions *completions);

#endif
