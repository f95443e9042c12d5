/* SPDX-License-Identifier: MIT */
/*
 * The command connection of a shard. It sends the requests of callers in order, and answers them as
 * the replies come. If the connection is lost, its requests go back to the mailbox, in doubt: the
 * server may have carried them out. Only the shard's thread calls.
 */
#ifndef RELAY_COMMANDS_H
#define RELAY_COMMANDS_H

#include "relay/link.h"
#include "relay/mailbox.h"

struct commands {
	struct client *client;
	struct mailbox *mailbox;
	struct address address; /* from the user */
	struct address server;  /* of the connection, perhaps from a Sentinel */
	struct link link;
	struct requests sent;   /* in order */
	struct requests resend; /* refused by the server for now; to be sent again later */
	struct requests
		unconfirmed;  /* carried out by the server, not yet confirmed by enough replicas */
	int later;            /* the refusal; 0: none */
	int why;              /* the last error of the connection */
	bool must_wait;       /* changes were sent after the last WAIT */
	bool waits;           /* a WAIT is in flight */
	unsigned puts_sent;   /* commands in flight that carry puts */
	uint64_t put_sent_ns; /* the time at which the last such command was sent */
	bool must_recover;    /* first ask for deliveries that were lost with a connection */
	struct request wait;
	struct request recover;
};

void commands_init(struct commands *commands, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed);

/* Open the connection if the back-off is over. Returns whether it is open. */
bool commands_open(struct commands *commands, uint64_t now_ns);

/* Close the connection and put its requests back. It is opened again after the back-off. */
void commands_lose(struct commands *commands, int why, uint64_t now_ns);

/* Returns whether a command may be sent now. */
bool commands_are_open(const struct commands *commands);

/* Send the queued requests. Returns when to call again. */
uint64_t commands_send(struct commands *commands, uint64_t now_ns);

/* Send a request of the thread itself. */
void commands_send_own(struct commands *commands, struct request *request, uint64_t now_ns);

/* Read the replies. If the call returns an error, the caller must close the connection. */
int commands_read(struct commands *commands, uint64_t now_ns);

/*
 * Finish unconfirmed requests whose timeout has ended. Returns an error if a reply is overdue; the
 * caller must then close the connection. Otherwise writes when the next reply or timeout is due.
 */
int commands_expire(struct commands *commands, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns whether a recovery is due or in flight. Until its reply, no other deliveries may be read.
 */
bool commands_recover(const struct commands *commands);

/* Returns the number of commands that have no reply yet. */
unsigned commands_owed(const struct commands *commands);

#endif
