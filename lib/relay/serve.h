/* SPDX-License-Identifier: MIT */
/*
 * The scheduler of a relay. It subscribes to bells on its own connection, and sends a look when the
 * seat says so. Only the shard's thread calls.
 */
#ifndef RELAY_SERVE_H
#define RELAY_SERVE_H

#include "relay/commands.h"
#include "relay/seat.h"

struct serve {
	struct commands *commands; /* sends the looks */
	struct client *client;
	struct link bells;
	struct seat seat;
	struct request look;
	bool looking;           /* the look is among those sent */
	uint64_t look_pause_ns; /* the delay after a refused look */
	unsigned confirmed;     /* subscriptions confirmed */
	bool pinged;
	uint64_t ping_ns; /* the next one */
};

void serve_init(struct serve *serve, struct commands *commands, struct client *client,
                uint64_t seed);

/*
 * Subscribe, look and ping as needed. The command connection must be open. Returns when to call
 * again.
 */
uint64_t serve_pass(struct serve *serve, uint64_t now_ns);

/*
 * Read messages from the bells' connection. If the call returns an error, the caller must close
 * that connection.
 */
int serve_read(struct serve *serve, uint64_t now_ns);

/* Close the bells' connection. */
void serve_lose_bells(struct serve *serve, int why, uint64_t now_ns);

/* The command connection is lost, with any look in flight. Also close the bells' connection. */
void serve_lost(struct serve *serve, int why, uint64_t now_ns);

/* A look was answered. */
void serve_answered(struct serve *serve, const struct reply *reply, uint64_t now_ns);

#endif
