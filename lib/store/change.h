/* SPDX-License-Identifier: MIT */
/* A change: whether a caller may ask for it, and what it does within a transaction. */
#ifndef TIMERHUB_STORE_CHANGE_H
#define TIMERHUB_STORE_CHANGE_H

#include "store/store.h"

struct changing {
	struct statements *statements;
	const char *queue;
	int64_t now_us;    /* when the caller asked, on the wall clock */
	int64_t lease_now; /* the present time, as the value of a lease that ends now */
};

void changing_init(struct changing *changing, const struct timerhub_store *store,
                   struct statements *statements);

/* Checks a change without the database. Returns 0 or a negative errno. */
int change_check(const struct timerhub_store *store, const struct timerhub_store_change *change);

/*
 * Checks the changes that a caller makes as one, none of which may be a touch. Sets `result` in
 * each: at most one has an error, which is also returned.
 */
int changes_check(const struct timerhub_store *store, struct timerhub_store_change *changes,
                  unsigned count);

bool changes_have_put(const struct timerhub_store_change *changes, unsigned count);

/*
 * Makes the changes in a transaction, all or none. Sets `result` in each, and the ids of puts.
 * SQLite may have ended the whole transaction after an error.
 */
int changes_make(struct changing *changing, struct timerhub_store_change *changes, unsigned count);

static inline bool change_is_answer(const struct timerhub_store_change *change)
{
	return change->op >= TIMERHUB_STORE_DONE;
}

#endif
