/* SPDX-License-Identifier: MIT */
/*
 * Requests as commands, and their replies: of a waiting caller, on his stack until `finished` is
 * set, or of the shard's thread. In one list at a time.
 */
#ifndef RELAY_REQUEST_H
#define RELAY_REQUEST_H

#include "relay/keys.h"
#include "relay/shared.h"
#include "relay/wire.h"

#define REQUEST_WHEN_BYTES 24
#define CLIENT_HOLDER_BYTES 32
#define REQUEST_DATA_MAX (UINT32_C(1) << 20) /* equals the largest data_max in timerhub.lua */

enum request_kind {
	REQUEST_PUT,
	REQUEST_CANCEL,
	REQUEST_MOVE,
	REQUEST_DONE,
	REQUEST_PARK,
	REQUEST_RETRY,
	REQUEST_TOUCH,
	REQUEST_READ,    /* prefetch a ready task, and do not wait for one */
	REQUEST_RECOVER, /* read some of the deliveries that this consumer has not answered */
	REQUEST_STAT,
	REQUEST_LOOK,
	REQUEST_LEAVE,
	REQUEST_FORGET, /* this consumer ends */
	REQUEST_PAUSE,
	REQUEST_RESUME,
	REQUEST_EACH,
	REQUEST_WAIT, /* asks how many replicas hold the changes to which Redis has replied */
	REQUEST_TIME, /* finds out whether a connection that was idle for long still works */
	REQUEST_KINDS
};

struct request {
	struct request *next;
	enum request_kind kind;
	const char *id;
	/* Due time of a put, move or retry, as text for the Redis function. */
	char when[REQUEST_WHEN_BYTES];
	/* Flags of a put or move, for the Redis function; what an each lists. */
	const char *flags;
	uint64_t interval_us; /* of a put of a periodic task */
	uint64_t periods;     /* that a done of a periodic task ends */
	uint32_t reason;      /* of a park */
	const void *data;     /* data of the task that a put stores */
	size_t data_len;
	/* Entry of a done, retry or touch; a recovery lists the entries behind it. */
	const char *delivery;
	unsigned count; /* in a recovery or an each: how many */
	bool untaken;   /* in a retry: no caller has had the task */
	uint64_t call;  /* in a put: no other put of this id has this number */
	bool made_id;   /* the library made the id of this put */
	bool joins;     /* this put shares the command and the reply of the previous put */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* end of the call's timeout, on the sleeper's clock */
	/* Time of sending; the shard's thread writes sent_ns and the fields below. */
	uint64_t sent_ns;
	/* The request's connection was lost, so the request's outcome is unknown. */
	bool in_doubt;
	int result;
	/* Becomes 1 when the request is finished and belongs to its caller again. */
	struct eventcount finished;
	/* Is called instead if no caller waits; on any thread, perhaps with the relay's lock. */
	void (*completed)(struct request *request);
	bool is_own; /* the shard's thread made the request, so no caller waits */
	/* or NULL; only of the shard thread's own requests */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	/* or NULL; reads the reply of a caller's request whose result is 0 */
	void (*read)(void *arg, const struct reply *reply);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/* How a shard reads for takers that do not wait. Under the relay's lock. */
struct reads {
	int away;          /* why the shard has no connection to its server, or 0 */
	bool blocked;      /* the takers' connection waits for the next ready task */
	bool wanted;       /* a taker has asked for a read that is not sent yet */
	uint64_t asked_ns; /* when it asked for the read that is not answered yet; 0: none */
	uint64_t round_ns; /* a round trip of the last handshake */
};

/* As one server's client. After open, only the shard's thread writes it. */
struct client {
	struct shared *shared;
	uint32_t shard; /* index of the server */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* unique name of this relay on this server */
	char holder[CLIENT_HOLDER_BYTES];   /* unique name of this relay in its changes */
	/*
	 * epoch - 1 connections with unanswered changes were lost; the server refuses earlier
	 * epochs until fence_us, when the last of these gives up
	 */
	uint64_t epoch;
	uint64_t fence_us;
	uint64_t until_us; /* largest `until` of a change sent so far */
	/* `until` is so much before a deadline: a put sent after past_us may be a second one. */
	uint64_t cut_ns;
	/* Local time of the anchor, the last reply that had Redis's time. */
	uint64_t anchor_ns;
	uint64_t anchor_us; /* Redis's time at the anchor */
	uint64_t round_ns;  /* a round trip of the last handshake */
	uint64_t lease_ns;  /* of the queue on this server; written under the lock, for takers */
	struct reads reads;
	uint64_t looks; /* number of calls of timerhub_look that were answered */
	uint64_t bells; /* number of bell messages that were received */
};

/* When a reply's deliveries were asked for and read. Under the lock (lease_ns). */
struct arrival client_arrival(const struct client *client, uint64_t sent_ns, uint64_t now_ns);

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Set `finished`, which gives the request back to its caller, and wake the caller. */
void request_finish(struct request *request);

/* Returns the earliest deadline of the requests, or `next_ns` if `next_ns` is earlier. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/* Reads of takes end by `by_ns`. */
void requests_end_reads(const struct requests *requests, uint64_t by_ns);

/*
 * Finishes the requests whose timeout has ended, with `why`, or with -ETIMEDOUT if `why` is 0 or a
 * request is in doubt. If `why` is -EEXIST, the server is one of another order, which no wait can
 * mend, so requests that are not in doubt are finished at once.
 */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/*
 * Returns whether a request changes a task or a lease, so that it must not arrive late. It then
 * carries `until` and the client's holder and epoch.
 */
bool request_is_change(const struct request *request);

/* Returns whether replicas may have to confirm the request before it is finished. */
bool request_is_fact(const struct request *request);

/* Returns the deadline of a request on Redis's clock. */
uint64_t request_until_us(const struct client *client, const struct request *request);

void request_encode(const struct client *client, const struct request *request,
                    struct bytes *bytes);

/* Encode several puts as one command. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * What a refusal, or 0, tells the caller. -ETIMEDOUT in doubt: the first sending may have had
 * effect, and may be the reason.
 */
int request_result(const struct request *request, int result);

/* False: send it again. `index` is 0, or its position from 1 in a shared reply. Under the lock. */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
