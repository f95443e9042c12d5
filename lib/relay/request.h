/* SPDX-License-Identifier: MIT */
/*
 * Encodes requests as Redis commands, and reads their replies. A request is a call whose caller
 * waits, or a command of the shard's thread itself. A request is on its caller's stack, and in one
 * list at a time. The caller continues when `finished` is set.
 */
#ifndef RELAY_REQUEST_H
#define RELAY_REQUEST_H

#include "relay/keys.h"
#include "relay/shared.h"
#include "relay/wire.h"

#define REQUEST_WHEN_BYTES 24
#define REQUEST_DATA_MAX (UINT32_C(1) << 20) /* equals DATA_MAX of timerhub.lua */

enum request_kind {
	REQUEST_PUT,
	REQUEST_CANCEL,
	REQUEST_MOVE,
	REQUEST_DONE,
	/* This kind and the kinds before it are changes, which replicas may have to confirm. */
	REQUEST_RETRY,
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
	/* Of a put, move or retry: the due time, as text for the Redis function. */
	char when[REQUEST_WHEN_BYTES];
	const char *flags; /* of a put or move: flags for the Redis function */
	const void *data;  /* of a put: the data of the task */
	size_t data_len;
	const char *delivery; /* of a retry or touch: id of the stream's entry */
	bool made_id;         /* of a put: the library made the id */
	bool joins;           /* of a put: it shares the command and reply of the put before it */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* end of the call's timeout, on the sleeper's clock */
	uint64_t sent_ns;     /* the shard's thread writes this and the fields below */
	bool in_doubt;        /* the request's connection was lost, so the outcome is unknown */
	int result;
	struct eventcount finished; /* 1: the request belongs to its caller again */
	bool is_own;                /* the shard's thread made the request, so no caller waits */
	/*
	 * A callback for the reply, called with `arg`, or NULL. Only requests of the thread itself
	 * have a callback.
	 */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/*
 * The relay as a client of one server: the relay's name, the key names, and the anchor. After open,
 * only the shard's thread writes the struct.
 */
struct client {
	struct shared *shared;
	uint32_t shard; /* index of the server */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* unique name of this relay on this server */
	uint64_t anchor_ns;                 /* local time of the anchor */
	uint64_t anchor_us;                 /* Redis's time at the anchor */
	uint64_t looks;                     /* number of looks that were answered */
	uint64_t bells;                     /* number of bells that were received */
};

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Set `finished`. After that the request belongs to its caller. */
void request_finish(struct request *request);

/* Returns the earliest deadline of the requests, or `next_ns` if that is earlier. */
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
