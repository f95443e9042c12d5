/* SPDX-License-Identifier: MIT */
/*
 * Carries requests from callers to a shard's thread. Callers append requests to the mailbox and
 * wake the thread. The shard's thread takes all queued requests at once. The relay's lock protects
 * all fields of the mailbox.
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

/* Queue a request, wait for its result, and return the result. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/*
 * Make the shard's thread do another pass. If the thread sleeps, wake it. The caller holds the
 * relay's lock.
 */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begin a pass of the shard's thread. During the pass, mailbox_wake() only notes that a caller has
 * new work. Finish the queued requests whose deadline has passed, with the result `why`. Returns
 * the earliest deadline of the remaining requests.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Move the requests that must be sent now from the mailbox into the list `taken`. `put_sent_ns` is
 * the time at which the put in flight was sent, or 0 if no put is in flight. While a put is in
 * flight, new puts stay in the mailbox, for hold_ns at most, and then share a command. A put in a
 * shared command takes less than half of the server time of a put in its own command. If the
 * network is slow, a wait of more than hold_ns would halve the rate of puts. Returns the time at
 * which the thread must call mailbox_take() again for the waiting puts.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/*
 * Put the requests of a lost connection back into the mailbox, before the requests that are queued
 * in it.
 */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/*
 * End a pass of the shard's thread. Returns true if no caller has queued work during the pass.
 * Stores in `*ret_ending` whether the thread must end.
 */
bool mailbox_end(struct mailbox *mailbox, bool *ret_ending);

#endif
