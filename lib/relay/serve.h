/* SPDX-License-Identifier: MIT */
/*
 * Runs a relay's scheduler for one server: it sends each look (a call of timerhub_look, which moves
 * due tasks) at the time that look_timing.h computes. The scheduler receives bells, the messages
 * that ask for an earlier look, on a connection of its own. Only the shard's thread calls.
 */
#ifndef RELAY_SERVE_H
#define RELAY_SERVE_H

#include "relay/look_timing.h"
#include "relay/pipeline.h"

struct serve {
	struct pipeline *pipeline; /* the command connection, which sends the looks */
	struct client *client;
	struct link bells;
	struct look_timing timing;
	struct request look;
	bool looking;           /* a look is in flight */
	uint64_t look_pause_ns; /* the delay after a refused look */
	unsigned confirmed;     /* number of confirmed subscriptions */
	bool pinged;
	uint64_t ping_ns; /* when to send the next PING */
};

void serve_init(struct serve *serve, struct pipeline *pipeline, struct client *client,
                uint64_t seed);

/*
 * Subscribe, send a look, and send a PING, each if its time has come. The command connection must
 * be open. Returns the time by which this function must be called again.
 */
uint64_t serve_pass(struct serve *serve, uint64_t now_ns);

/*
 * Read messages from the bells' connection. If the call returns an error, the caller must close
 * that connection.
 */
int serve_read(struct serve *serve, uint64_t now_ns);

/* Close the bells' connection. */
void serve_lose_bells(struct serve *serve, int why, uint64_t now_ns);

/*
 * Handle the loss of the command connection: forget the look in flight, and close the bells'
 * connection.
 */
void serve_lost(struct serve *serve, int why, uint64_t now_ns);

/* Handle the reply to a look. */
void serve_answered(struct serve *serve, const struct reply *reply, uint64_t now_ns);

#endif
