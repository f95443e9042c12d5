/* SPDX-License-Identifier: MIT */
/*
 * A shard's command connection: sends callers' requests in order, finishes them as replies come.
 * When it is lost, they go back to the mailbox, in doubt. Only the shard's thread.
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
	 * Requests that the server refused for now, and that are sent again after the next connect.
	 */
	struct requests resend;
	/* Requests that the server has carried out, but that too few replicas have confirmed. */
	struct requests unconfirmed;
	/*
	 * Errno of a refusal that makes the thread connect again; 0: the server has refused
	 * nothing.
	 */
	int later;
	int why;              /* why there is no connection, or 0 */
	bool must_wait;       /* changes were sent after the last WAIT */
	bool waits;           /* a WAIT is in flight */
	unsigned puts_sent;   /* number of commands in flight that carry puts */
	uint64_t put_sent_ns; /* time at which the last command with puts was sent */
	uint64_t heard_ns;    /* when the server last sent something on the connection */
	/*
	 * Deliveries may have been lost with a connection, or a recovery has not listed all yet:
	 * the thread asks for them before it reads others.
	 */
	bool must_recover;
	char recovered[TIMERHUB_RELAY_DELIVERY_BYTES]; /* the last entry listed, or "0" */
	/* Each is in flight once at most: `waits`; no read of takers during a recovery. */
	struct request wait;
	struct request time;
	struct request recover;
	struct request read; /* for takers that do not wait, see struct reads */
};

void pipeline_init(struct pipeline *pipeline, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed);

/*
 * If the connection is closed and the back-off has ended, open the connection. Returns whether the
 * connection is open.
 */
bool pipeline_open(struct pipeline *pipeline, uint64_t now_ns);

/* Close the connection, put its requests back into the mailbox, and begin a back-off. */
void pipeline_lose(struct pipeline *pipeline, int why, uint64_t now_ns);

/* Returns whether commands may be sent on the command connection now. */
bool pipeline_is_open(const struct pipeline *pipeline);

/*
 * Returns why requests can't be sent, or 0. -EEXIST means that the server has another place in the
 * queue's order and has never been connected, so the list of servers is wrong, as an open would
 * have said. If the server was right before, it is -EROFS, because a put's -EEXIST says that its
 * task is there.
 */
int pipeline_why(const struct pipeline *pipeline);

/*
 * Send the queued requests of the mailbox. Returns the time by which pipeline_send() must be called
 * again.
 */
uint64_t pipeline_send(struct pipeline *pipeline, uint64_t now_ns);

/* Send a request that the shard's thread makes for itself. */
void pipeline_send_own(struct pipeline *pipeline, struct request *request, uint64_t now_ns);

/*
 * Read the replies on the command connection. If pipeline_read() returns an error, the caller must
 * close the command connection.
 */
int pipeline_read(struct pipeline *pipeline, uint64_t now_ns);

/*
 * Those without a reply to come whose timeout has ended. An error: a reply is overdue, close the
 * connection; else `*ret_next_ns` is the next time.
 */
int pipeline_expire(struct pipeline *pipeline, uint64_t now_ns, uint64_t *ret_next_ns);

/* A recovery of lost deliveries is due or in flight: until its reply, nothing else may be read. */
bool pipeline_recover(const struct pipeline *pipeline);

/* Returns the number of commands on the command connection that have no reply yet. */
unsigned pipeline_owed(const struct pipeline *pipeline);

#endif
