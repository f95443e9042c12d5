/* SPDX-License-Identifier: MIT */
/*
 * A relay's part as an alarm clock: it listens to its bells on a connection of its own, and looks
 * when its seat says so. The shard's thread alone.
 */
#ifndef RELAY_SERVE_H
#define RELAY_SERVE_H

#include "relay/commands.h"
#include "relay/seat.h"

struct serve {
	struct commands *commands; /* by which it looks */
	struct asker *asker;
	struct link bells;
	struct seat seat;
	struct request look;
	bool looking;           /* the look is among those sent */
	uint64_t look_pause_ns; /* a look was refused: how long the next one waits */
	unsigned confirmed;     /* subscriptions */
	bool pinged;
	uint64_t ping_ns; /* the next one */
};

void serve_init(struct serve *serve, struct commands *commands, struct asker *asker, uint64_t seed);

/* Listen, look, ping; the command connection is there. Returns when to come again. */
uint64_t serve_pass(struct serve *serve, uint64_t now_ns);

/* Read what has come over the connection of the bells. A negative errno: it is to be lost. */
int serve_read(struct serve *serve, uint64_t now_ns);

/* The connection of the bells is lost. */
void serve_lose_bells(struct serve *serve, int why, uint64_t now_ns);

/* The command connection is lost, and a look with it; so that of the bells is closed too. */
void serve_lost(struct serve *serve, int why, uint64_t now_ns);

/* A look was answered. */
void serve_answered(struct serve *serve, const struct reply *reply, uint64_t now_ns);

#endif
