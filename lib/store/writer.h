/* SPDX-License-Identifier: MIT */
/*
 * Group commit: what several threads ask for meanwhile is done in one transaction, with one sync.
 */
#ifndef TIMERHUB_STORE_WRITER_H
#define TIMERHUB_STORE_WRITER_H

#include "store/change.h"
#include "store/deliver.h"

enum { WORK_WAITS, WORK_LEADS, WORK_DONE };
enum work_kind { WORK_CHANGES, WORK_LOOK, WORK_READ, WORK_RESTART_WAL };

/* What a thread wants to have done. It is on that thread's stack, or part of a submit. */
struct work {
	struct work *next;
	enum work_kind kind;
	bool is_submit;                        /* it is part of a submit, so nobody waits for it */
	struct timerhub_store_change *changes; /* WORK_CHANGES: the changes */
	unsigned count;
	int64_t now_us;       /* when it was asked for */
	uint64_t deadline_ns; /* until when it must have begun, on CLOCK_MONOTONIC */
	struct look look;     /* WORK_LOOK: what was found */
	/* WORK_READ: is called with the connection */
	void (*read)(struct timerhub_store *, void *);
	void *context;
	int result;
	bool is_at_leader;
	atomic_u32 state; /* a futex */
};

/*
 * Does a work item, or waits until another thread has done it. Returns its result, or -EAGAIN if it
 * could not begin before its deadline.
 */
int writer_do(struct timerhub_store *store, struct work *work);

/* Submits a work item, and returns at once. When it is done, it is put into synced.completed. */
void writer_submit(struct timerhub_store *store, struct work *work);

/* Does the items that wait, on the store's own thread, which was told to lead. */
void writer_lead_for_submits(struct timerhub_store *store);

/*
 * Begins a transaction with the write lock, in turn with other handles. Returns 0, -EAGAIN, or an
 * error.
 */
int writer_begin(struct timerhub_store *store, uint64_t deadline_ns);
int writer_end(struct timerhub_store *store, int result);

/* Syncs the WAL. When it returns 0, all that was committed before the call is on stable storage. */
int writer_sync_all(struct timerhub_store *store);

#endif
