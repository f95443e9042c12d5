/* SPDX-License-Identifier: MIT */
/* Group commit: one transaction and one sync for all that came meanwhile. */
#ifndef TIMERHUB_STORE_WRITER_H
#define TIMERHUB_STORE_WRITER_H

#include "store/change.h"
#include "store/deliver.h"

enum { WORK_WAITS, WORK_LEADS, WORK_DONE };
enum work_kind { WORK_CHANGES, WORK_LOOK, WORK_READ, WORK_RESTART_WAL };

/* What a thread wants done. It lies on the thread's stack, or is part of a submit. */
struct work {
	struct work *next;
	enum work_kind kind;
	bool is_submit;                        /* nobody waits for it */
	struct timerhub_store_change *changes; /* of WORK_CHANGES */
	unsigned count;
	int64_t now_us;                                /* when it was asked for */
	uint64_t deadline_ns;                          /* on CLOCK_MONOTONIC, to begin */
	struct look look;                              /* what WORK_LOOK has found */
	void (*read)(struct timerhub_store *, void *); /* of WORK_READ, with the connection */
	void *context;
	int result;
	bool is_at_leader;
	atomic_u32 state; /* a futex */
};

/* Waits until it is done. Returns its result; -EAGAIN: it could not begin before its deadline. */
int writer_do(struct timerhub_store *store, struct work *work);

/* Returns at once. The work goes to synced.completed when it is done. */
void writer_submit(struct timerhub_store *store, struct work *work);

/* On the store's own thread, which was told to lead. */
void writer_lead_for_submits(struct timerhub_store *store);

/* A transaction with the write lock, in turn with other handles. 0, -EAGAIN, or an error. */
int writer_begin(struct timerhub_store *store, uint64_t deadline_ns);
int writer_end(struct timerhub_store *store, int result);

/* All that is committed now is on stable storage when it returns 0. */
int writer_sync_all(struct timerhub_store *store);

#endif
