/* SPDX-License-Identifier: MIT */
/* What a take does in the database, on the leader's thread. */
#ifndef TIMERHUB_STORE_DELIVER_H
#define TIMERHUB_STORE_DELIVER_H

#include "store/store.h"

enum { TAKER_WAITS, TAKER_WATCHES, TAKER_ANSWERED };

/* A take in progress, on its thread's stack. It waits in the store's list, or is at the leader. */
struct taker {
	struct taker *next;
	struct timerhub_store_task *tasks;
	unsigned max;
	int result; /* how many it has got, or a negative errno */
	bool is_late, is_at_leader;
	atomic_u32 state; /* a futex */
};

/* The earliest times, in us; INT64_MAX: none. */
struct look {
	int64_t due_us;   /* on the wall clock, of the waiting tasks */
	int64_t lease_us; /* on CLOCK_BOOTTIME, of the taken ones */
};

/* Returns 1 if a transaction would find something to do now, 0, or a negative errno. */
int deliver_look(struct timerhub_store *store, struct look *ret);

/* Hands out what is due to the takers of a list, within a transaction. 0 or a negative errno. */
int deliver_serve(struct timerhub_store *store, struct taker *takers);

/* The transaction has failed. */
void deliver_undo(struct taker *takers);

/* The transaction has been committed. */
void deliver_count(struct timerhub_store *store, const struct taker *takers);

/* At the open, in a transaction: leases of an earlier boot end, and so do wrong periods. */
int deliver_begin(struct timerhub_store *store);

#endif
