/* SPDX-License-Identifier: MIT */
/*
 * The command connection of a shard: what callers have gathered is written out at once, in order,
 * and answered as the replies come. A connection that is lost gives its requests back to the
 * mailbox: whether they had happened is then in doubt. The shard's thread alone.
 */
#ifndef RELAY_COMMANDS_H
#define RELAY_COMMANDS_H

#include "relay/link.h"
#include "relay/mailbox.h"

struct commands {
	struct asker *asker;
	struct mailbox *mailbox;
	struct address address; /* as the user gave it */
	struct address server;  /* where the connection is: a Sentinel has said so */
	struct link link;
	struct requests sent;   /* in order */
	struct requests again;  /* answered "not now", to be sent once more */
	struct requests unsure; /* done by the server, and not yet by as many replicas as needed */
	int later;              /* why not now; 0: nothing of the kind */
	int why;                /* what kept the last connection from being made, or used */
	bool must_wait;         /* facts were sent after the last WAIT */
	bool waits;             /* a WAIT is among those sent */
	unsigned puts_sent;     /* commands with puts among those sent */
	uint64_t put_sent_ns;   /* the last of them */
	bool must_recover;      /* what a lost connection was to bring is to be asked for first */
	struct request wait;
	struct request recover;
};

void commands_init(struct commands *commands, struct asker *asker, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed);

/* Open the connection if it is time to. True: it is there. */
bool commands_open(struct commands *commands, uint64_t now_ns);

/* Close it, give back what was on it, and open it again after the back-off. */
void commands_lose(struct commands *commands, int why, uint64_t now_ns);

/* May something be sent now? */
bool commands_are_open(const struct commands *commands);

/* Send what has gathered. Returns when to come again. */
uint64_t commands_send(struct commands *commands, uint64_t now_ns);

/* Send one of the thread's own requests. */
void commands_send_own(struct commands *commands, struct request *request, uint64_t now_ns);

/* Read what has come. A negative errno: the connection is to be lost. */
int commands_read(struct commands *commands, uint64_t now_ns);

/* A negative errno: an answer is overdue, the connection is to be lost; else, when one is. */
int commands_check(struct commands *commands, uint64_t now_ns, uint64_t *ret_next_ns);

/* Is a recovery due, or under way? Nothing else may be read before its answer. */
bool commands_recover(const struct commands *commands);

/* Commands whose replies have not come. */
unsigned commands_owed(const struct commands *commands);

#endif
