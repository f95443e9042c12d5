/* SPDX-License-Identifier: MIT */
/*
 * A mailbox carries requests from callers to a shard's thread, which takes all of them at once. The
 * relay's lock protects it.
 *
 * Held puts: while a put that was sent at put_sent_ns is in flight, mailbox_take() leaves new puts
 * queued, to share one cheaper command. put_sent_ns is 0 if no put is in flight.
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

/* Queues a request for the shard's thread, and does not wait. Called with the relay's lock held. */
void mailbox_post(struct mailbox *mailbox, struct request *request);

/* Waits until a posted request is finished, and returns its result. */
int mailbox_wait(struct request *request);

/* Queues a request for the shard's thread, waits until it is finished, and returns its result. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/* Makes the shard's thread look for work, and wakes it. Called with the relay's lock held. */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begins a pass of the thread. Finishes expired requests with the error `why`. Returns the next
 * deadline.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/* Finishes expired requests with the error `why`. Returns false if the thread must end. */
bool mailbox_expire(struct mailbox *mailbox, int why, uint64_t now_ns);

/* Takes the requests that can be sent now. Returns when to call this again. */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/* Queues the requests of a lost connection again, before those that are queued already. */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/* Returns true if no work has come since mailbox_begin(). Stores whether the thread must end. */
bool mailbox_end(struct mailbox *mailbox, bool *ret_ending);

#endif
