/* SPDX-License-Identifier: MIT */
/*
 * Carries requests from callers to a shard's thread. Callers append requests and wake the thread.
 * The shard's thread takes all queued requests at once. The lock protects all fields.
 */
#ifndef RELAY_MAILBOX_H
#define RELAY_MAILBOX_H

#include "relay/request.h"
#include "relay/sleeper.h"

struct mailbox {
	struct shared *shared;
	struct sleeper *sleeper;
	struct requests queued;
	bool holds;   /* the thread holds puts back, and will take new puts without a wake */
	bool pending; /* a caller has work for the thread */
	bool idle;    /* the thread sleeps, or is about to */
};

/* ---- any thread ---- */

/* Queue a request and wait for its result. Returns the result. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/* Make the thread do another pass, and wake it if it sleeps. The lock is held. */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begin a pass: from now on each caller must wake the thread. Finish the requests whose deadline
 * has passed, with the result `why`. Returns the earliest deadline of the remaining requests.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Take the requests to send now. `put_sent_ns` is the time at which the put in flight was sent (0:
 * no put is in flight). New puts wait until the put in flight has its reply, for hold_ns at most.
 * The puts that have waited share a command. A shared command costs the server a third of the time
 * of single commands. With a slow network, a longer wait would halve the rate of puts. Returns when
 * to call again for the waiting puts.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/* Put the requests of a lost connection back, before the requests queued since. */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/*
 * End a pass. Returns true if no caller has queued work during the pass. Stores whether the thread
 * must end.
 */
bool mailbox_end(struct mailbox *mailbox, bool *ret_closing);

#endif
