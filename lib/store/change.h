/* SPDX-License-Identifier: MIT */
/* A change: whether a caller may ask for it, and what it does within a transaction. */
#ifndef TIMERHUB_STORE_CHANGE_H
#define TIMERHUB_STORE_CHANGE_H

#include "store/store.h"

struct changing {
	struct statements *statements;
	const char *queue;
	int64_t now_us;    /* on the wall clock, when the caller asked */
	int64_t lease_now; /* a lease that ends now */
};

void changing_init(struct changing *changing, const struct timerhub_store *store,
                   struct statements *statements);

/* Does not look at the database. Returns 0 or a negative errno. */
int change_check(const struct timerhub_store *store, const struct timerhub_store_change *change);

/*
 * Checks changes that a caller makes as one, among which may be no touch. Sets `result` in each: at
 * most one has an error, which is returned.
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
