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
	/* The connection for commands, on which the polls of the queue are sent too. */
	struct pipeline *pipeline;
	struct client *client;
	struct link bells;
	struct look_timing timing;
	struct request look;
	bool looking; /* a look is in flight */
	/* The wait after a refused poll, doubled with each refusal; 0 after a success. */
	uint64_t look_pause_ns;
	unsigned confirmed; /* number of subscriptions that the server has confirmed */
	bool pinged;        /* a PING is unanswered */
	/* The negative errno of a refused SUBSCRIBE, or PING if ping_refused is true; else 0. */
	int bells_refused;
	bool ping_refused;
	uint64_t ping_ns;  /* when to send the next PING */
	uint64_t asked_ns; /* when the last SUBSCRIBE or PING was sent */
};

void scheduler_init(struct scheduler *scheduler, struct pipeline *pipeline, struct client *client,
                    uint64_t seed);

/* Subscribes, polls and pings when due, while commands can be sent. Returns when to call again. */
uint64_t scheduler_pass(struct scheduler *scheduler, uint64_t now_ns);

/* Reads wake-up messages. After an error the caller must call scheduler_lose_bells(). */
int scheduler_read(struct scheduler *scheduler, uint64_t now_ns);

void scheduler_lose_bells(struct scheduler *scheduler, int why, uint64_t now_ns);

/* Called when the command connection is lost. Closes the connection for wake-up messages too. */
void scheduler_lost(struct scheduler *scheduler, int why, uint64_t now_ns);

/* Reads the reply to a poll of the queue, and sets the time of the next one. */
void scheduler_answered(struct scheduler *scheduler, const struct reply *reply, uint64_t now_ns);

#endif
