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
	/* Requests that were sent and not answered, in the order in which they were sent. */
	struct requests sent;
	/*
	 * Requests that the server has refused for now. They are sent again on the next connection.
	 */
	struct requests resend;
	/* Requests that the server has carried out, but that too few replicas have confirmed. */
	struct requests unconfirmed;
	/*
	 * The negative errno with which the server refuses requests for now, for example while it
	 * loads its data, or 0. While it is set, nothing is sent.
	 */
	int later;
	int why;              /* why there is no connection, or 0 */
	bool must_wait;       /* changes were sent after the last WAIT */
	bool waits;           /* a WAIT is in flight */
	unsigned puts_sent;   /* number of commands in flight that carry puts */
	uint64_t put_sent_ns; /* time at which the last command with puts was sent */
	uint64_t heard_ns;    /* when the server last sent something on the connection */
	/*
	 * True if Redis may have sent deliveries that were lost with a connection. The shard's
	 * thread then asks Redis for them again, before it reads new ones.
	 */
	bool must_recover;
	char recovered[TIMERHUB_RELAY_DELIVERY_BYTES]; /* the last entry listed, or "0" */
	/*
	 * The requests `wait`, `time`, `recover` and `read` are the thread's own: no call has made
	 * them. Each is sent again only after its reply has come, or its connection was lost.
	 */
	struct request wait;
	struct request time;
	struct request recover;
	struct request read; /* a read for takers that do not wait, see struct reads */
};

void pipeline_init(struct pipeline *pipeline, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed);

struct handshake_pause;

/*
 * Connects if there is no connection and it is time for the next attempt. Returns whether there is
 * a connection. handshake.h says what `pause` is.
 */
bool pipeline_open(struct pipeline *pipeline, const struct handshake_pause *pause, uint64_t now_ns);

/*
 * Closes the connection because of the error `why`. Its requests go back into the mailbox, to be
 * sent again on the next connection.
 */
void pipeline_lose(struct pipeline *pipeline, int why, uint64_t now_ns);

/*
 * Returns whether commands can be sent now: there is a connection, and its server has not asked for
 * a pause.
 */
bool pipeline_is_open(const struct pipeline *pipeline);

/*
 * Returns the negative errno because of which no requests can be sent now. Returns 0 if there is
 * none, or if the first attempt to connect has not ended.
 */
int pipeline_why(const struct pipeline *pipeline);

/* Sends the requests that are queued in the mailbox. Returns when to call it again. */
uint64_t pipeline_send(struct pipeline *pipeline, uint64_t now_ns);

/* Sends a request that the shard's thread has made itself. */
void pipeline_send_own(struct pipeline *pipeline, struct request *request, uint64_t now_ns);

/*
 * Reads replies and finishes their requests. After an error the caller must call pipeline_lose().
 */
int pipeline_read(struct pipeline *pipeline, uint64_t now_ns);

/*
 * Finishes requests whose timeout has ended. Stores in *ret_next_ns when to call this again.
 * Returns -EHOSTUNREACH if a reply is overdue: the caller must call pipeline_lose(). Else returns
 * 0.
 */
int pipeline_expire(struct pipeline *pipeline, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * After a lost connection, its deliveries are read from Redis once more. Returns true until that is
 * done. Until then the caller must not read new ones (README.md, invariant 3).
 */
bool pipeline_recover(const struct pipeline *pipeline);

/*
 * Returns how many commands Redis has not replied to. A command that carries several puts counts
 * as one.
 */
unsigned pipeline_owed(const struct pipeline *pipeline);

#endif
