/* SPDX-License-Identifier: MIT */
/*
 * Encodes requests as commands, and reads their replies. A request is that of a waiting caller, on
 * his stack until `finished` is set, or one of the shard's thread. It is in one list at a time.
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
	REQUEST_READ,    /* prefetches a task that is ready, and does not wait for one */
	REQUEST_RECOVER, /* reads some of the deliveries that this consumer has not answered */
	REQUEST_STAT,
	REQUEST_LOOK,
	REQUEST_LEAVE,
	REQUEST_FORGET, /* removes the name of this consumer, which ends */
	REQUEST_PAUSE,
	REQUEST_RESUME,
	REQUEST_EACH,
	REQUEST_WAIT, /* asks how many replicas have the changes to which Redis has replied */
	REQUEST_TIME, /* finds out whether a connection that was idle for long still works */
	REQUEST_KINDS
};

struct request {
	struct request *next;
	enum request_kind kind;
	const char *id;
	/* Due time of a put, move or retry, as text for the Redis function. */
	char when[REQUEST_WHEN_BYTES];
	/*
	 * In a put or move: its flags, as letters that the function in Redis reads. In a
	 * REQUEST_EACH: the state whose tasks are to be listed ("waiting", "taken" or "parked").
	 */
	const char *flags;
	uint64_t interval_us; /* in a put of a periodic task: its interval */
	uint64_t periods;     /* in a done of a periodic task: how many periods it ends */
	uint32_t reason;      /* in a park: the reason */
	const void *data;     /* data of the task that a put stores */
	size_t data_len;
	/*
	 * In a done, retry or touch: the delivery that it is for. In a recovery: the last delivery
	 * that was listed, after which the list goes on.
	 */
	const char *delivery;
	unsigned count; /* in a recovery or an each: how many to list */
	bool untaken;   /* in a retry: the task is given back before any caller has had it */
	uint64_t call;  /* in a put: no other put of this id has this number */
	bool made_id;   /* the library made the id of this put */
	bool joins;     /* this put shares the command and the reply of the previous put */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* end of the call's timeout, on the sleeper's clock */
	/* The time of sending. Only the shard's thread writes this field and those below. */
	uint64_t sent_ns;
	/*
	 * True if the request was sent and its connection was then lost, so that nobody knows
	 * whether the server has carried it out.
	 */
	bool in_doubt;
	int result;
	/* Becomes 1 when the request is finished and belongs to its caller again. */
	struct eventcount finished;
	/*
	 * If it is not NULL, no caller waits, and this is called when the request is finished, on
	 * any thread, perhaps with the relay's lock.
	 */
	void (*completed)(struct request *request);
	bool is_own; /* the shard's thread made the request, so no caller waits */
	/*
	 * If it is not NULL, it is called with the reply to a request that the shard's thread has
	 * made itself.
	 */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	/*
	 * If it is not NULL, it is called with the reply to a caller's request that has succeeded
	 * (its result is 0), to read what the reply says.
	 */
	void (*read)(void *arg, const struct reply *reply);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/* How a shard reads deliveries for takers that do not wait. The relay's lock protects it. */
struct reads {
	int away;     /* why the shard has no connection to its server, or 0 */
	bool blocked; /* the takers' connection waits for the next ready task */
	bool wanted;  /* a taker has asked for a read that is not sent yet */
	/* when a taker asked for the read that is not answered yet; 0 if there is none */
	uint64_t asked_ns;
	uint64_t round_ns; /* a round trip of the last handshake */
};

/* This relay as a client of one server. After the open only the shard's thread writes it. */
struct client {
	struct shared *shared;
	uint32_t shard; /* index of the server */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* unique name of this relay on this server */
	char holder[CLIENT_HOLDER_BYTES];   /* unique name of this relay in its changes */
	/*
	 * How many connections with unanswered changes were lost. The server refuses changes that
	 * carry a lower epoch. That is needed until fence_us, when the last of those changes has
	 * reached its `until`, after which it is refused anyhow.
	 */
	uint64_t epoch;
	uint64_t fence_us;
	uint64_t until_us; /* largest `until` of a change sent so far */
	/*
	 * How much earlier than the deadline of its call the server ceases to accept a change (its
	 * `until`). It is 0 unless a call may take longer than past_us, the time for which the
	 * server remembers a finished task: a put that is sent again after that could put its task
	 * a second time.
	 */
	uint64_t cut_ns;
	/* Local time of the anchor, the last reply that had Redis's time. */
	uint64_t anchor_ns;
	uint64_t anchor_us; /* Redis's time at the anchor */
	uint64_t round_ns;  /* a round trip of the last handshake */
	/* lease of the queue on this server; written with the lock, because takers read it */
	uint64_t lease_ns;
	struct reads reads;
	uint64_t looks; /* number of calls of timerhub_look that were answered */
	uint64_t bells; /* number of bell messages that were received */
};

/*
 * Returns when a reply with deliveries was asked for and read. Called with the lock, which protects
 * lease_ns.
 */
struct arrival client_arrival(const struct client *client, uint64_t sent_ns, uint64_t now_ns);

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Gives a request back to its caller, by `finished`, and wakes the caller. */
void request_finish(struct request *request);

/* Returns the earliest deadline of the requests, or `next_ns` if `next_ns` is earlier. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/* Lets the reads for takes in the list end at `by_ns` at the latest. */
void requests_end_reads(const struct requests *requests, uint64_t by_ns);

/*
 * Finishes the requests whose timeout has ended, with `why`, or with -ETIMEDOUT if `why` is 0 or a
 * request is in doubt. If `why` is -EEXIST, the list of servers has another order than the queue's,
 * so waiting does not help, and requests that are not in doubt are finished at once.
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

/* Encodes several puts as one command. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * Returns the result of a request whose reply is `result`, 0 or a refusal. If the request is in
 * doubt, a refusal becomes -ETIMEDOUT, because the first sending may have had an effect that is the
 * reason of the refusal.
 */
int request_result(const struct request *request, int result);

/*
 * Reads the reply to a request. `index` is 0, or the position of a put, from 1, in a shared reply.
 * Returns false if the request must be sent again. Called with the lock.
 */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
