/* SPDX-License-Identifier: MIT */
/*
 * A request: a call whose caller waits, or a command of the thread itself. This module encodes its
 * command and reads its reply. A request is on its caller's stack, and in one list at a time. The
 * caller continues when `finished` is set.
 */
#ifndef RELAY_REQUEST_H
#define RELAY_REQUEST_H

#include "relay/keys.h"
#include "relay/shared.h"
#include "relay/wire.h"

#define REQUEST_WHEN_BYTES 24
#define REQUEST_DATA_MAX (UINT32_C(1) << 20) /* as in timerhub.lua */

enum request_kind {
	REQUEST_PUT,
	REQUEST_CANCEL,
	REQUEST_MOVE,
	REQUEST_DONE,
	REQUEST_RETRY, /* up to here: changes, which replicas may have to confirm */
	REQUEST_TOUCH,
	REQUEST_READ,    /* prefetch a ready task, without waiting */
	REQUEST_RECOVER, /* read deliveries that a lost connection did not bring */
	REQUEST_STAT,
	REQUEST_LOOK,
	REQUEST_LEAVE,
	REQUEST_WAIT, /* count the replicas that hold all changes answered so far */
};

struct request {
	struct request *next;
	enum request_kind kind;
	const char *id;
	char when[REQUEST_WHEN_BYTES]; /* put, move, retry: as the functions take it */
	const char *flags;             /* put, move */
	const void *data;              /* put */
	size_t data_len;
	const char *delivery; /* retry, touch: the stream's entry */
	bool made_id;         /* put: the id is none of the caller's */
	bool joins;           /* a put that shares the command and reply of the put before it */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* on the sleeper's clock */
	uint64_t sent_ns;     /* by the thread, as all that follow */
	bool in_doubt;        /* its connection was lost, so the outcome is unknown */
	int result;
	struct eventcount finished; /* 0, then 1: the request is the caller's again */
	bool is_own;                /* a thread's: no caller waits for it */
	/* A thread's own may have this, which gets the reply; `arg` is its first argument. */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/*
 * This relay as a client of one server: its name, the key names, and the anchor. The shard's thread
 * writes it, after open.
 */
struct client {
	struct shared *shared;
	uint32_t shard; /* which of the queue's servers */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* of the scheduler; unique */
	uint64_t anchor_ns;                 /* local time of the anchor */
	uint64_t anchor_us;                 /* Redis's time at the anchor */
	uint64_t looks;                     /* that were answered */
	uint64_t bells;                     /* that were heard */
};

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* The request is its caller's from then on. */
void request_finish(struct request *request);

/* Returns the earliest deadline, at most `next_ns`. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/*
 * Finish the requests whose deadline has passed, with the result `why`. The result is -ETIMEDOUT if
 * the request is in doubt or `why` is 0.
 */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/* Write a request as a command. */
void request_encode(const struct client *client, const struct request *request,
                    struct bytes *bytes);

/* Write several puts as one command. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * Write the result of a request from its reply. Returns false if the request must be sent again.
 * `index` is 0, or the request's position from 1 if several requests share the reply. The lock is
 * held.
 */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
