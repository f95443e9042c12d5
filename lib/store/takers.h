/* SPDX-License-Identifier: MIT */
/* The list of takers that wait. Any thread; the leader has those whom it serves out of the list. */
#ifndef TIMERHUB_STORE_TAKERS_H
#define TIMERHUB_STORE_TAKERS_H

#include "store/deliver.h"

/* All that wait, the watcher last. */
struct taker *takers_pop(struct timerhub_store *store);

/*
 * Answers those that have something or are late; the others wait on, before those that came since.
 */
void takers_settle(struct timerhub_store *store, struct taker *takers);

/* If none watches. Under the lock. */
void takers_choose_watcher(struct timerhub_store *store);

/* From now on every change and take returns -EIO: what a later sync says would prove nothing. */
void store_fail(struct timerhub_store *store);

static inline bool store_has_failed(const struct timerhub_store *store)
{
	/* relaxed: who does not see it yet finds the disk's error by itself */
	return u32_load_relaxed(&store->failed) != 0;
}

#endif
