/* SPDX-License-Identifier: MIT */
/*
 * A call that its caller waits for, or one of a thread's own: what it is to Redis, and what Redis's
 * reply is to it. A request is on its caller's stack, and in one list at a time; its caller goes on
 * when its ticket is set.
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
	REQUEST_RETRY, /* up to here: facts, which replicas may have to hold */
	REQUEST_TOUCH,
	REQUEST_READ,    /* what is due already, into the hand */
	REQUEST_RECOVER, /* what Redis has given this consumer, and a lost connection has not */
	REQUEST_STAT,
	REQUEST_LOOK,
	REQUEST_LEAVE,
	REQUEST_WAIT, /* how many replicas hold what was answered before */
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
	bool joins; /* put: shares command and reply of the one before it among those sent */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* on the nap's clock */
	uint64_t sent_ns;     /* by the thread, as all that follow */
	bool in_doubt;        /* it was on a connection that was lost */
	int result;
	struct ticket finished; /* 0, then 1: the request is the caller's again */
	bool is_own;            /* a thread's: no caller waits for it */
	/* A thread's own may have this, which gets the reply; `arg` is its first argument. */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/* The part of a shard that its requests share. The shard's thread writes it, after open. */
struct asker {
	struct shared *shared;
	uint32_t shard; /* which of the queue's servers */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* of the alarm clock: unlike any other's */
	uint64_t anchor_ns;                 /* here, when ... */
	uint64_t anchor_us;                 /* ... it was this there */
	uint64_t looks;                     /* that were answered */
	uint64_t bells;                     /* that were heard */
};

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* The request is its caller's from then on. */
void request_finish(struct request *request);

/* The soonest deadline, or `next_ns` if that is sooner. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/* Finish those whose time is over: with `why`, or -ETIMEDOUT if it is in doubt or `why` is 0. */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/* Write a request as a command. */
void request_encode(const struct asker *asker, const struct request *request, struct bytes *bytes);

/* Write several puts as one command. */
void requests_encode_puts(const struct asker *asker, const struct requests *puts,
                          struct bytes *bytes);

/*
 * What a reply means to its request; writes its result. False: it must be sent again. `place` is
 * the request's among those that share the reply, from 1, or 0 if the reply is its own. The lock is
 * held.
 */
bool request_answer(struct asker *asker, struct request *request, const struct reply *reply,
                    size_t place, uint64_t now_ns);

#endif
