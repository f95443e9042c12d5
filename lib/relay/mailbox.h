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

/* Queues a request for the shard's thread, and does not wait. Called with the relay's lock held. */
void mailbox_post(struct mailbox *mailbox, struct request *request);

/* Waits until a posted request is finished, and returns its result. */
int mailbox_wait(struct request *request);

/* Queues a request for the shard's thread, waits until it is finished, and returns its result. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/*
 * Makes the shard's thread look for work again, and wakes it if it sleeps. Called with the relay's
 * lock held.
 */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begins a pass of the thread over its work. Finishes requests whose timeout has ended, with `why`,
 * the connection's error. If that is -EOPNOTSUPP, it finishes all. Returns the next deadline.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Finishes queued requests whose timeout has ended, with the connection's error `why`. Called while
 * the thread is busy connecting. Returns false if the thread must end.
 */
bool mailbox_expire(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Moves queued requests to `taken`. Puts stay queued for up to 0.2 ms if an earlier put has no
 * reply, so that they can be sent together. put_sent_ns is when that put was sent, or 0 if there is
 * none. Returns when to call again.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/* Queues the requests of a lost connection again, before those that are queued already. */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/*
 * Returns true if no work has been queued since mailbox_begin(), so that the thread may sleep.
 * Stores in *ret_ending whether the thread must end.
 */
bool mailbox_end(struct mailbox *mailbox, bool *ret_ending);

#endif
