/* SPDX-License-Identifier: MIT */
/*
 * For one server: calls timerhub_look at the times of look_timing.h, and hears bells on a
 * connection of its own. Only the shard's thread.
 */
#ifndef RELAY_SCHEDULER_H
#define RELAY_SCHEDULER_H

#include "relay/look_timing.h"
#include "relay/pipeline.h"

struct scheduler {
	/* The command connection, which sends the calls of timerhub_look. */
	struct pipeline *pipeline;
	struct client *client;
	struct link bells;
	struct look_timing timing;
	struct request look;
	bool looking; /* a call of timerhub_look is in flight */
	/* The delay of the next call of timerhub_look after a refused call. */
	uint64_t look_pause_ns;
	unsigned confirmed; /* number of subscriptions that the server has confirmed */
	bool pinged;        /* a PING is unanswered */
	/* errno by which the server refuses SUBSCRIBE, or PING (ping_refused); 0: it does not */
	int bells_refused;
	bool ping_refused;
	uint64_t ping_ns;  /* when to send the next PING */
	uint64_t asked_ns; /* when the last SUBSCRIBE or PING was sent */
};

void scheduler_init(struct scheduler *scheduler, struct pipeline *pipeline, struct client *client,
                    uint64_t seed);

/* Subscribe, look and PING, as due; the command connection is open. Returns when to call again. */
uint64_t scheduler_pass(struct scheduler *scheduler, uint64_t now_ns);

/*
 * Read messages from the bells' connection. If scheduler_read() returns an error, the caller must
 * close the bells' connection.
 */
int scheduler_read(struct scheduler *scheduler, uint64_t now_ns);

void scheduler_lose_bells(struct scheduler *scheduler, int why, uint64_t now_ns);

/*
 * Handle the loss of the command connection. Forget the call of timerhub_look in flight, and close
 * the bells' connection.
 */
void scheduler_lost(struct scheduler *scheduler, int why, uint64_t now_ns);

/* Handle the reply to a call of timerhub_look. */
void scheduler_answered(struct scheduler *scheduler, const struct reply *reply, uint64_t now_ns);

#endif
