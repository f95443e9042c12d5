/* SPDX-License-Identifier: MIT */
/*
 * Serves a queue on one server: it calls timerhub_look (a look) at the times that look_timing.h
 * computes, and hears bells, the messages that ask for an earlier look, on a connection of its own.
 * Only the shard's thread uses it.
 */
#ifndef RELAY_SCHEDULER_H
#define RELAY_SCHEDULER_H

#include "relay/look_timing.h"
#include "relay/pipeline.h"

struct scheduler {
	/* The command connection, which sends the looks. */
	struct pipeline *pipeline;
	struct client *client;
	struct link bells;
	struct look_timing timing;
	struct request look;
	bool looking; /* a look is in flight */
	/* How long the next look is put off after one that was refused. */
	uint64_t look_pause_ns;
	unsigned confirmed; /* number of subscriptions that the server has confirmed */
	bool pinged;        /* a PING is unanswered */
	/* errno by which the server refuses SUBSCRIBE, or PING (ping_refused); 0 if it does not */
	int bells_refused;
	bool ping_refused;
	uint64_t ping_ns;  /* when to send the next PING */
	uint64_t asked_ns; /* when the last SUBSCRIBE or PING was sent */
};

void scheduler_init(struct scheduler *scheduler, struct pipeline *pipeline, struct client *client,
                    uint64_t seed);

/*
 * Subscribes, looks and sends a PING, as each is due. The command connection is open. Returns when
 * to call it again.
 */
uint64_t scheduler_pass(struct scheduler *scheduler, uint64_t now_ns);

/* Reads messages from the bells' connection, which the caller must close after an error. */
int scheduler_read(struct scheduler *scheduler, uint64_t now_ns);

void scheduler_lose_bells(struct scheduler *scheduler, int why, uint64_t now_ns);

/*
 * Takes note that the command connection is lost: forgets the look in flight, and closes the bells'
 * connection.
 */
void scheduler_lost(struct scheduler *scheduler, int why, uint64_t now_ns);

/* Reads the reply to a look. */
void scheduler_answered(struct scheduler *scheduler, const struct reply *reply, uint64_t now_ns);

#endif
