/* SPDX-License-Identifier: MIT */
/*
 * The requests that callers have for a shard's thread. Callers append, and wake the thread; the
 * thread takes them all at once. All of it is under the lock.
 */
#ifndef RELAY_MAILBOX_H
#define RELAY_MAILBOX_H

#include "relay/request.h"
#include "relay/sleeper.h"

struct mailbox {
	struct shared *shared;
	struct nap *nap;
	struct requests gathered;
	bool holds; /* the thread has left puts in it, and comes for them by itself */
	bool news;  /* a caller wants something of the thread */
	bool idle;  /* the thread sleeps, or is about to */
};

/* ---- any thread ---- */

/* Hand a request over, and wait until it is answered. Returns its result. */
int mailbox_ask(struct mailbox *mailbox, struct request *request);

/* Let the thread look once more, and wake it if it sleeps. The lock is held. */
void mailbox_wake(struct mailbox *mailbox);

/* ---- the shard's thread ---- */

/*
 * Begin a pass: from now on each caller has to wake the thread. Finish requests whose time is over,
 * with `why` they were not sent. Returns the soonest deadline of the others.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Take what is to be sent now. If a put was sent at `put_sent_ns` and is under way (0: none is),
 * other puts stay for the reply, and then share a command, which costs the server a third of what
 * as many commands do. They stay for hold_ns at most: if the way to the server is long, waiting for
 * a reply would halve what many callers put. Returns when to come for those that stay.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/* Put requests of a lost connection back, before those that have come since. */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/* End a pass. Returns whether nothing has come meanwhile; tells whether the thread is to end. */
bool mailbox_end(struct mailbox *mailbox, bool *ret_closing);

#endif
