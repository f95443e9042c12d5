/* SPDX-License-Identifier: MIT */
/*
 * The relay: everything put together, and what the files of the calls need of each other. relay.c
 * opens and closes, change.c puts, cancels, moves, acknowledges and gives back, take.c delivers,
 * loop.c is a shard's thread, serve.c is its part as an alarm clock.
 *
 * A queue is spread over one or more servers, its shards. Each shard has a thread and connections
 * of its own, so that a server that does not answer holds up no other. A call is a request on its
 * caller's stack. Under the lock the caller appends it to the requests that its shard has gathered;
 * the shard's thread writes all of them out at once, in order, and answers them as the replies
 * come, while the next ones gather. A connection that is lost gives the requests on it back to be
 * sent again: whether they had happened is then in doubt.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include <stdbool.h>
#include <timerhub_relay.h>

#include "address.h"
#include "delivery.h"
#include "greet.h"
#include "keys.h"
#include "life.h"
#include "link.h"
#include "lock.h"
#include "nap.h"
#include "seat.h"
#include "ticket.h"

#define RELAY_WHEN_BYTES 24
#define RELAY_CONSUMER_BYTES 128
#define RELAY_DATA_MAX (UINT32_C(1) << 20) /* as in timerhub.lua */

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

/* A call that its caller waits for; or one of the thread's own. */
struct request {
	struct request *next;
	enum request_kind kind;
	const char *id;
	char when[RELAY_WHEN_BYTES]; /* put, move, retry: as the functions take it */
	const char *flags;           /* put, move */
	const void *data;            /* put */
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
};

struct requests {
	struct request *first;
	struct request *last;
};

/* One server's part of a queue. */
struct shard {
	struct timerhub_relay *relay;
	uint32_t index;
	struct address address;
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* of the alarm clock: unlike any other's */
	struct nap *nap;
	pthread_t thread;
	bool has_thread;

	/* The thread's alone, after open. */
	struct address server; /* where the command connection is: a Sentinel has said so */
	struct link command;
	struct link taker;
	struct link bells;
	struct requests sent;  /* on the command connection, in order */
	struct requests again; /* answered "not now", to be sent once more */
	struct requests
		unsure;       /* done by the server, and not yet by as many replicas as asked for */
	int later;            /* why not now; 0: nothing of the kind */
	bool must_wait;       /* facts were sent after the last WAIT */
	bool waits;           /* a WAIT is among those sent */
	unsigned puts_sent;   /* commands with puts among those sent */
	uint64_t put_sent_ns; /* the last of them */
	struct request wait;
	struct request look;
	struct request leave;
	struct request recover;
	struct seat seat;
	bool looking;   /* the look is among those sent */
	uint64_t looks; /* that were answered */
	uint64_t bells_heard;
	uint64_t look_pause_ns; /* a look was refused: how long the next one waits */
	unsigned confirmed;     /* subscriptions */
	bool pinged;
	uint64_t ping_ns; /* the next one */
	bool reading;     /* the taker's connection has a read outstanding */
	bool must_recover;
	uint64_t anchor_ns; /* here, when ... */
	uint64_t anchor_us; /* ... it was this there */
	uint64_t random;

	/* Under the relay's lock. */
	struct requests gathered;
	bool holds; /* the thread has left puts in it, and comes for them by itself */
	bool news;  /* a caller wants something of the thread */
	bool idle;  /* the thread sleeps, or is about to */
	int why;    /* what kept the last connection from being made, or used */
};

/* For the daemon. Open tells it, and then the shards' threads. */
struct watcher {
	/* A negative errno: the server is not there, or refuses to be looked at; 0: a look. */
	void (*tell)(void *arg, uint32_t shard, int error);
	void *arg;
};

struct timerhub_relay {
	struct watcher watcher; /* tell may be NULL */
	char consumer[RELAY_CONSUMER_BYTES];
	bool serves;
	uint64_t timeout_ns;
	uint64_t horizon_us;
	uint64_t grace_us;
	uint32_t batch;
	uint32_t replicas; /* that must hold a fact; 0: none need */
	uint64_t seed;     /* of ids that are made */
	struct life life;
	int ready_fd;
	uint32_t shard_count;
	struct shard *shards;

	/* Everything below: under the lock, except the tickets' numbers. */
	struct lock lock;
	struct deliveries deliveries;
	struct ticket takers;   /* what takers wait for */
	uint64_t hold_ns;       /* the longest that a put waits for one under way */
	uint64_t lease_ns;      /* by the server that was last connected to */
	uint64_t ids;           /* made so far */
	uint32_t turn;          /* the shard that the next take without waiting asks first */
	uint32_t waiting;       /* takers waiting */
	uint32_t inside;        /* takers inside take */
	uint64_t wait_until_ns; /* the latest that one of them waits */
	bool watched;           /* the fd was asked for: read ahead */
	bool stopped;           /* no take waits or asks Redis any more */
	bool ended;             /* a stopped take has found the hand empty: none takes after it */
	bool closing;           /* takers are sent away, and the threads end */
	struct timerhub_relay_stats stats;
};

/* ---- for the daemon ---- */

/* As timerhub_relay_open(). */
int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher);

/* ---- for callers; the lock is not held ---- */

/* The one that has a task of that id. */
struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id);

/* Hand a request over, and wait until it is answered. Returns its result. */
int shard_ask(struct shard *shard, struct request *request);

/* -EINVAL, -EOWNERDEAD, or 0: it may be called. */
int relay_check(const struct timerhub_relay *relay);

/* ---- the threads: loop.c ---- */

/* Tell the watcher, if there is one. The lock is not held. */
void shard_tell(const struct shard *shard, int error);

/* Encode a request of the thread's own, and append it to those sent. The connection is there. */
void shard_send(struct shard *shard, struct request *request, uint64_t now_ns);

/* Let takers know of what is in the hand. The lock is held. */
void relay_show_hand(struct timerhub_relay *relay);

/* Open a link if it is time to. True: it is there. */
bool link_open(struct shard *shard, struct link *link, uint64_t now_ns);

/* Close, and open again after the back-off; without commands, the bells too. */
void link_lose(struct shard *shard, struct link *link, int why, uint64_t now_ns);

int shard_start(struct shard *shard);

/* Ends the threads, which first give back the deliveries that no caller has taken. */
void shards_end(struct timerhub_relay *relay);

/* Let the threads look once more, and wake those that sleep. The lock is held. */
void relay_wake(struct timerhub_relay *relay);

/* ---- the alarm clock's part: serve.c ---- */

/* Listen, look, ping. Returns when to come again. */
uint64_t serve_pass(struct shard *shard, uint64_t now_ns);

/* Read what has come over the connection of the bells. */
void serve_read(struct shard *shard, uint64_t now_ns);

/* A look was answered. */
void serve_answered(struct shard *shard, const struct reply *reply, uint64_t now_ns);

/* The command connection is lost, and a look with it. */
void serve_lost(struct shard *shard, uint64_t now_ns);

/* ---- requests: request.c ---- */

/* Write a request as a command. */
void request_encode(const struct shard *shard, const struct request *request, struct bytes *bytes);

/* Write several puts as one command. */
void requests_encode_puts(const struct shard *shard, const struct requests *puts,
                          struct bytes *bytes);

/*
 * What a reply means to its request; writes its result. False: it must be sent again. `place` is
 * the request's among those that share the reply, from 1, or 0 if the reply is its own.
 */
bool request_answer(struct shard *shard, struct request *request, const struct reply *reply,
                    size_t place, uint64_t now_ns);

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

#endif
