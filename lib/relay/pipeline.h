/* SPDX-License-Identifier: MIT */
/*
 * The command connection of a shard. It sends callers' requests in order, and finishes them as the
 * replies come. When the connection is lost, its requests are in doubt (the server may have carried
 * them out) and go back to the mailbox. Only the shard's thread uses it.
 */
#ifndef RELAY_PIPELINE_H
#define RELAY_PIPELINE_H

#include "relay/link.h"
#include "relay/mailbox.h"

struct pipeline {
	struct client *client;
	struct mailbox *mailbox;
	struct address address; /* address of the server that the user gave */
	/* Address of the connected server, which a Sentinel may have named. */
	struct address server;
	struct link link;
	/* Requests that were sent and have no reply, in the order of sending. */
	struct requests sent;
	/*
	 * Requests that the server has refused only for now, which are sent again after the next
	 * connect.
	 */
	struct requests resend;
	/* Requests that the server has carried out, but that too few replicas have confirmed. */
	struct requests unconfirmed;
	/*
	 * Why the server has refused requests for now, as a negative errno, because it is loading
	 * or no longer a master, for example. Nothing is sent until the thread has connected again.
	 * 0 if it has refused none.
	 */
	int later;
	int why;              /* why there is no connection, or 0 */
	bool must_wait;       /* changes were sent after the last WAIT */
	bool waits;           /* a WAIT is in flight */
	unsigned puts_sent;   /* number of commands in flight that carry puts */
	uint64_t put_sent_ns; /* time at which the last command with puts was sent */
	uint64_t heard_ns;    /* when the server last sent something on the connection */
	/*
	 * True if deliveries may have been lost with a connection and the server has not yet listed
	 * all that are this relay's. The thread asks for those before it reads new ones.
	 */
	bool must_recover;
	char recovered[TIMERHUB_RELAY_DELIVERY_BYTES]; /* the last entry listed, or "0" */
	/*
	 * The thread's own requests, each of which is in flight once at most. No delivery is read
	 * for takers during a recovery.
	 */
	struct request wait;
	struct request time;
	struct request recover;
	struct request read; /* a read for takers that do not wait, see struct reads */
};

void pipeline_init(struct pipeline *pipeline, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed);

/* Opens the connection if it is closed and the back-off has ended. Returns whether it is open. */
bool pipeline_open(struct pipeline *pipeline, uint64_t now_ns);

/* Closes the connection, puts its requests back into the mailbox, and begins a back-off. */
void pipeline_lose(struct pipeline *pipeline, int why, uint64_t now_ns);

/* Returns whether commands may be sent on the command connection now. */
bool pipeline_is_open(const struct pipeline *pipeline);

/*
 * Returns why requests cannot be sent, or 0. -EEXIST means that the server has another index in the
 * order of the queue's servers and has never been connected, so that the list of servers is wrong,
 * as an open would have said. If the server was right before, it is -EROFS, because the -EEXIST of
 * a put says that its task is there.
 */
int pipeline_why(const struct pipeline *pipeline);

/* Sends the queued requests of the mailbox. Returns when to call it again. */
uint64_t pipeline_send(struct pipeline *pipeline, uint64_t now_ns);

/* Sends a request that the shard's thread makes for itself. */
void pipeline_send_own(struct pipeline *pipeline, struct request *request, uint64_t now_ns);

/* Reads the replies on the connection. After an error the caller must close it. */
int pipeline_read(struct pipeline *pipeline, uint64_t now_ns);

/*
 * Finishes the requests whose timeout has ended and that wait for no reply. Returns an error if a
 * reply is overdue, and then the caller must close the connection; otherwise it stores in
 * *ret_next_ns when to call it again.
 */
int pipeline_expire(struct pipeline *pipeline, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns whether a recovery of lost deliveries is due or in flight. Until its reply has come, no
 * other delivery may be read.
 */
bool pipeline_recover(const struct pipeline *pipeline);

/* Returns the number of commands on the command connection that have no reply yet. */
unsigned pipeline_owed(const struct pipeline *pipeline);

#endif
