/* SPDX-License-Identifier: MIT */
/*
 * Labels:
 * [taker] taker_answer, takers_choose_watcher → is_answered, taker_await, taker_leave: carries the
 * tasks that a taker has got, and what the last watcher knew of the descriptors.
 */
#include "store/takers.h"

#include "base/bell.h"

struct taker *takers_pop(struct timerhub_store *store)
{
	struct taker *first, *watcher = NULL, **place;

	lock_take(&store->takers.lock);
	first = store->takers.first;
	for (place = &first; *place;) {
		(*place)->is_at_leader = true;
		if (*place == store->takers.watcher) {
			watcher = *place;
			*place = watcher->next;
			watcher->next = NULL;
		} else {
			place = &(*place)->next;
		}
	}
	*place = watcher;
	store->takers.first = NULL;
	store->takers.last = &store->takers.first;
	lock_give(&store->takers.lock);
	return first;
}

/* Gives a taker its answer. Called with the lock. The taker's memory may be gone afterwards. */
static void taker_answer(struct timerhub_store *store, struct taker *taker)
{
	bool watches = taker == store->takers.watcher;

	u32_store_release(&taker->state, TAKER_ANSWERED); /* [taker] */
	if (watches)
		bell_ring(store->takers.bell);
	else
		futex_wake(&taker->state, 1);
}

void takers_choose_watcher(struct timerhub_store *store)
{
	struct taker *next = store->takers.first;

	if (!next || store->takers.watcher)
		return;
	store->takers.watcher = next;
	u32_store_release(&next->state, TAKER_WATCHES); /* [taker] */
	futex_wake(&next->state, 1);
}

void takers_settle(struct timerhub_store *store, struct taker *takers)
{
	struct taker *next, *waiting = NULL, **last = &waiting;

	lock_take(&store->takers.lock);
	for (; takers; takers = next) {
		next = takers->next;
		takers->is_at_leader = false;
		if (takers->result != 0 || takers->is_late) {
			taker_answer(store, takers);
		} else {
			*last = takers;
			last = &takers->next;
		}
	}
	*last = store->takers.first;
	store->takers.first = waiting;
	for (store->takers.last = &store->takers.first; *store->takers.last;)
		store->takers.last = &(*store->takers.last)->next;
	/* the watcher may have left meanwhile, when it found nobody in the list */
	takers_choose_watcher(store);
	lock_give(&store->takers.lock);
}

void store_fail(struct timerhub_store *store)
{
	struct taker *takers;

	u32_store_relaxed(&store->failed, EIO); /* see store_has_failed() */
	takers = takers_pop(store);
	for (struct taker *taker = takers; taker; taker = taker->next)
		taker->result = -EIO;
	takers_settle(store, takers);
	bell_ring(store->takers.bell);
}
