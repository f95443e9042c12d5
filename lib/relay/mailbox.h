/* SPDX-License-Identifier: MIT */
/* Requests from callers to a shard's thread, which takes all at once. Under the relay's lock. */
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

/* Queue a request, whose caller does not wait yet. The caller holds the relay's lock. */
void mailbox_post(struct mailbox *mailbox, struct request *request);

/* Wait for the result of a posted request, and return it. */
int mailbox_wait(struct request *request);

/* Queue a request, wait for its result, and return the result. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/*
 * Make the shard's thread do another pass. If the thread sleeps, wake it. The caller holds the
 * relay's lock.
 */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begin a pass, in which mailbox_wake() only notes new work; finishes overdue requests with `why`,
 * and all of them at once if that is -EOPNOTSUPP, which no waiting mends.
 * Returns the earliest deadline left.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * What must be sent now. While a put is in flight (`put_sent_ns`, or 0), new ones wait, up to
 * hold_ns, and share a command, at less than half the server's time each; on a slow network a
 * longer wait would halve the rate. Returns when to call again.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/*
 * Put the requests of a lost connection back into the mailbox, before the requests that are queued
 * in it.
 */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/* True: nobody has queued work meanwhile. `*ret_ending`: the thread must end. */
bool mailbox_end(struct mailbox *mailbox, bool *ret_ending);

#endif
