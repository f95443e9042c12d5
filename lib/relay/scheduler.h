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
	/*
	 * How long to wait after the server has refused a poll, or 0 if the last poll succeeded.
	 * The wait doubles with each refusal.
	 */
	uint64_t look_pause_ns;
	unsigned confirmed; /* number of subscriptions that the server has confirmed */
	bool pinged;        /* a PING is unanswered */
	/*
	 * Negative errno with which the server has refused SUBSCRIBE or PING; 0 if it refuses
	 * neither.
	 */
	int bells_refused;
	bool ping_refused; /* the server has refused PING */
	uint64_t ping_ns;  /* when to send the next PING */
	uint64_t asked_ns; /* when the last SUBSCRIBE or PING was sent */
};

void scheduler_init(struct scheduler *scheduler, struct pipeline *pipeline, struct client *client,
                    uint64_t seed);

/*
 * Does what is due: subscribes to wake-up messages, polls the queue, and sends a PING to test the
 * connection. Called while commands can be sent. Returns when to call it again.
 */
uint64_t scheduler_pass(struct scheduler *scheduler, uint64_t now_ns);

/* Reads wake-up messages. After an error the caller must call scheduler_lose_bells(). */
int scheduler_read(struct scheduler *scheduler, uint64_t now_ns);

void scheduler_lose_bells(struct scheduler *scheduler, int why, uint64_t now_ns);

/*
 * Called when the connection for commands is lost. Forgets the poll that is in flight, and closes
 * the connection for wake-up messages.
 */
void scheduler_lost(struct scheduler *scheduler, int why, uint64_t now_ns);

/* Reads the reply to a poll of the queue, and sets the time of the next one. */
void scheduler_answered(struct scheduler *scheduler, const struct reply *reply, uint64_t now_ns);

#endif
