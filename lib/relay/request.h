/* SPDX-License-Identifier: MIT */
/*
 * Encodes requests as Redis commands, and reads their replies. A request is a call whose caller
 * waits, or a command of the shard's thread itself. It is on its caller's stack, and in one list at
 * a time. The caller continues when `finished` is set.
 */
#ifndef RELAY_REQUEST_H
#define RELAY_REQUEST_H

#include "relay/keys.h"
#include "relay/shared.h"
#include "relay/wire.h"

#define REQUEST_WHEN_BYTES 24
#define REQUEST_DATA_MAX (UINT32_C(1) << 20) /* DATA_MAX of timerhub.lua */

enum request_kind {
	REQUEST_PUT,
	REQUEST_CANCEL,
	REQUEST_MOVE,
	REQUEST_DONE,
	REQUEST_RETRY, /* the kinds up to here are changes: replicas may have to confirm them */
	REQUEST_TOUCH,
	REQUEST_READ,    /* prefetch a ready task, without waiting */
	REQUEST_RECOVER, /* read deliveries that were lost with a connection */
	REQUEST_STAT,
	REQUEST_LOOK,
	REQUEST_LEAVE,
	REQUEST_WAIT, /* count the replicas that hold all changes answered so far */
};

struct request {
	struct request *next;
	enum request_kind kind;
	const char *id;
	char when[REQUEST_WHEN_BYTES]; /* put, move, retry: the due time as text for the function */
	const char *flags;             /* put, move */
	const void *data;              /* put */
	size_t data_len;
	const char *delivery; /* retry, touch: the stream's entry */
	bool made_id;         /* put: the library made the id */
	bool joins;           /* a put that shares the command and reply of the put before it */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* on the sleeper's clock */
	uint64_t sent_ns;     /* the shard's thread writes this and the fields below */
	bool in_doubt;        /* its connection was lost, so the outcome is unknown */
	int result;
	struct eventcount finished; /* 1: the request belongs to its caller again */
	bool is_own;                /* a request of the shard's thread: no caller waits */
	/* If not NULL, called with `arg` and the reply. Only for requests of the thread itself. */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/*
 * This relay as a client of one server: its name, the key names, and the anchor. After open, only
 * the shard's thread writes it.
 */
struct client {
	struct shared *shared;
	uint32_t shard; /* which of the queue's servers */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* the unique name under which the scheduler looks */
	uint64_t anchor_ns;                 /* local time of the anchor */
	uint64_t anchor_us;                 /* Redis's time at the anchor */
	uint64_t looks;                     /* looks that were answered */
	uint64_t bells;                     /* bells that were received */
};

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Set `finished`. From then on the request belongs to its caller. */
void request_finish(struct request *request);

/* Returns the earliest deadline, at most `next_ns`. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/*
 * Finish the requests whose deadline has passed, with the result `why`. The result is -ETIMEDOUT if
 * the request is in doubt or `why` is 0.
 */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/* Encode a request as a command. */
void request_encode(const struct client *client, const struct request *request,
                    struct bytes *bytes);

/* Encode several puts as one command. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * Write the result of a request from its reply. Returns false if the request must be sent again.
 * `index` is 0 if the request has a reply of its own. If several requests share the reply, `index`
 * is the request's position in the reply, counted from 1. The lock is held.
 */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
