/* SPDX-License-Identifier: MIT */
/*
 * The list of takers that wait. Any thread may use it. While the leader, the thread that uses the
 * connection, serves takers, they are out of the list.
 */
#ifndef TIMERHUB_STORE_TAKERS_H
#define TIMERHUB_STORE_TAKERS_H

#include "store/deliver.h"

/* Takes all takers out of the list, the watcher last. */
struct taker *takers_pop(struct timerhub_store *store);

/*
 * Answers the takers that have got something or whose time is over, and puts the others back,
 * before those that came since.
 */
void takers_settle(struct timerhub_store *store, struct taker *takers);

/* Makes one of the takers the watcher, if there is none. Called with the lock. */
void takers_choose_watcher(struct timerhub_store *store);

/*
 * Lets every change and take return -EIO from now on, because after a failed sync the success of a
 * later one would prove nothing.
 */
void store_fail(struct timerhub_store *store);

static inline bool store_has_failed(const struct timerhub_store *store)
{
	/* relaxed: whoever does not see it yet gets the error of the disk by itself */
	return u32_load_relaxed(&store->failed) != 0;
}

#endif
