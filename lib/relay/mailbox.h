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
	struct sleeper *sleeper;
	struct requests queued;
	bool holds;   /* the thread holds puts back, and will fetch them unasked */
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
 * Begin a pass: from now on each caller has to wake the thread. Finish requests whose time is over,
 * with `why` they were not sent. Returns the soonest deadline of the others.
 */
uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns);

/*
 * Take the requests to send now. `put_sent_ns` is the time at which a put in flight was sent (0:
 * none). Puts wait for its reply and then share a command, which costs the server a third of single
 * commands. They wait for hold_ns at most. With a slow network, a longer wait would halve the rate
 * of puts. Returns when to call again for waiting puts.
 */
uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns);

/* Put the requests of a lost connection back, before the requests queued since. */
void mailbox_put_back(struct mailbox *mailbox, struct requests *back);

/*
 * End a pass. Returns whether no caller has queued work during the pass. Writes whether the thread
 * must end.
 */
bool mailbox_end(struct mailbox *mailbox, bool *ret_closing);

#endif
