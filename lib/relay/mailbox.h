/* SPDX-License-Identifier: MIT */
/*
 * A mailbox carries requests from callers to a shard's thread, which takes all of them at once. The
 * relay's lock protects it.
 */
#ifndef RELAY_MAILBOX_H
#define RELAY_MAILBOX_H

#include "relay/request.h"
#include "relay/sleeper.h"

struct mailbox {
	struct shared *shared;
	struct sleeper *sleeper;
	struct requests queued;
	bool holds;   /* queued puts wait for a reply, so a new put need not wake the thread */
	bool pending; /* a caller has work for the shard's thread */
	bool idle;    /* the shard's thread sleeps, or is about to sleep */
};

/* ---- any thread ---- */

/* Queues a request, whose caller does not wait yet. Called with the relay's lock. */
void mailbox_post(struct mailbox *mailbox, struct request *request);

/* Waits for the result of a posted request, and returns it. */
int mailbox_wait(struct request *request);

/* Queues a request, waits for its result, and returns that. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/*
 * Makes the shard's thread do another pass over its work, and wakes it if it sleeps. Called with
 * the relay's lock.
 */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begins a pass of the thread over its work, during which mailbox_wake() only takes note of new
 * work. Finishes overdue requests with `why`, or all of them if that is -EOPNOTSUPP, because
 * waiting does not help then. Returns the earliest deadline that is left.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Takes the requests that must be sent now. While a put is in flight (`put_sent_ns`, or 0), new
 * puts wait for up to hold_ns and then share a command, which costs the server less than half the
 * time for each; on a slow network a longer wait would halve the rate. Returns when to call it
 * again.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/*
 * Puts the requests of a lost connection back into the mailbox, before those that are queued in it.
 */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/*
 * Ends a pass. Returns true if nobody has queued work meanwhile, so that the thread may sleep.
 * Stores in *ret_ending whether the thread must end.
 */
bool mailbox_end(struct mailbox *mailbox, bool *ret_ending);

#endif
