/* SPDX-License-Identifier: MIT */
/* What a take does in the database, on the leader's thread. */
#ifndef TIMERHUB_STORE_DELIVER_H
#define TIMERHUB_STORE_DELIVER_H

#include "store/store.h"

enum { TAKER_WAITS, TAKER_WATCHES, TAKER_ANSWERED };

/*
 * A take that waits, on its thread's stack. It is in the store's list, or the leader, the thread
 * that uses the connection, has it.
 */
struct taker {
	struct taker *next;
	struct timerhub_store_task *tasks;
	unsigned max;
	int result; /* how many tasks it has got, or a negative errno */
	bool is_late, is_at_leader;
	atomic_u32 state; /* a futex */
};

/*
 * What a look at the database finds: the earliest times of the queue, in us; INT64_MAX if there is
 * none.
 */
struct look {
	int64_t due_us;   /* earliest due time of a waiting task, on the wall clock */
	int64_t lease_us; /* earliest end of a lease, on CLOCK_BOOTTIME */
};

/*
 * Looks at the database for what comes next. Returns 1 if a transaction would find something to do
 * now, 0 if not, or a negative errno.
 */
int deliver_look(struct timerhub_store *store, struct look *ret);

/*
 * Hands out what is due to the takers of a list, within a transaction. Returns 0 or a negative
 * errno.
 */
int deliver_serve(struct timerhub_store *store, struct taker *takers);

/* Takes back what the takers have got, because the transaction has failed. */
void deliver_undo(struct taker *takers);

/* Counts what the takers have got, because the transaction has been committed. */
void deliver_count(struct timerhub_store *store, const struct taker *takers);

/*
 * Puts the queue in order at the open, within a transaction: ends the leases of an earlier boot,
 * and corrects the times of periods that were set while the clock was wrong.
 */
int deliver_begin(struct timerhub_store *store);

#endif
