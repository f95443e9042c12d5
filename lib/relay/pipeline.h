/* SPDX-License-Identifier: MIT */
/*
 * The command connection of a shard. The shard's thread sends the requests of callers in order on
 * this connection, and finishes them as the replies come. If the connection is lost, its requests
 * go back to the mailbox in doubt: the server may have carried out some of them. Only the shard's
 * thread calls.
 */
#ifndef RELAY_PIPELINE_H
#define RELAY_PIPELINE_H

#include "relay/link.h"
#include "relay/mailbox.h"

struct pipeline {
	struct client *client;
	struct mailbox *mailbox;
	struct address address; /* address that the user gave */
	/* Address of the connected server, which a Sentinel may have named. */
	struct address server;
	struct link link;
	struct requests sent; /* requests without a reply, in the order of sending */
	/* Requests that the server refused for now, which will be sent again. */
	struct requests resend;
	struct requests
		/* Requests carried out by the server and not yet confirmed by enough replicas. */
		unconfirmed;
	/* Errno of a refusal after which to connect again; 0: no such refusal. */
	int later;
	int why;              /* the last error of the connection */
	bool must_wait;       /* changes were sent after the last WAIT */
	bool waits;           /* a WAIT is in flight */
	unsigned puts_sent;   /* commands in flight that carry puts */
	uint64_t put_sent_ns; /* when the last command with puts was sent */
	/* Before other reads, ask for deliveries that were lost with a connection. */
	bool must_recover;
	struct request wait;
	struct request recover;
};

void pipeline_init(struct pipeline *pipeline, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed);

/* Open the connection if the back-off is over. Returns whether it is open. */
bool pipeline_open(struct pipeline *pipeline, uint64_t now_ns);

/*
 * Close the connection and put its requests back into the mailbox. After the back-off the
 * connection is opened again.
 */
void pipeline_lose(struct pipeline *pipeline, int why, uint64_t now_ns);

/* Returns whether a command may be sent now. */
bool pipeline_is_open(const struct pipeline *pipeline);

/* Send the queued requests. Returns the time by which pipeline_send() must be called again. */
uint64_t pipeline_send(struct pipeline *pipeline, uint64_t now_ns);

/* Send a request that the shard's thread makes for itself. */
void pipeline_send_own(struct pipeline *pipeline, struct request *request, uint64_t now_ns);

/*
 * Read the replies on the command connection. If the call returns an error, the caller must close
 * the connection.
 */
int pipeline_read(struct pipeline *pipeline, uint64_t now_ns);

/*
 * Finish unconfirmed requests whose timeout has ended. Returns an error if a reply is overdue; the
 * caller must then close the connection. If no reply is overdue, writes when the next reply or
 * timeout is due.
 */
int pipeline_expire(struct pipeline *pipeline, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns whether a recovery is due or in flight. Until the reply to the recovery, no other
 * deliveries may be read.
 */
bool pipeline_recover(const struct pipeline *pipeline);

/* Returns the number of commands that have no reply yet. */
unsigned pipeline_owed(const struct pipeline *pipeline);

#endif
