/* SPDX-License-Identifier: MIT */
/*
 * Encodes requests as commands, and reads their replies. A request is that of a waiting caller, on
 * his stack until `finished` is set, or one of the shard's thread. It is in one list at a time.
 *
 * Deadlines: Redis remembers the id of a put only for the queue's setting past_us, and a put that
 * is repeated after that could add its task twice. So deadlines are cut_ns earlier than the
 * callers' timeouts.
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
	/* The due time or delay of a put, move or retry, as text for Redis. */
	char when[REQUEST_WHEN_BYTES];
	/*
	 * Letters that say how to put or move. In a REQUEST_EACH: "waiting", "taken" or "parked".
	 */
	const char *flags;
	uint64_t interval_us; /* in a put of a periodic task: its interval */
	uint64_t periods;     /* in a done of a periodic task: how many periods it ends */
	uint32_t reason;      /* in a park: the reason */
	const void *data;     /* data of the task that a put stores */
	size_t data_len;
	/*
	 * The stream entry that delivered the task. A REQUEST_RECOVER lists the entries after it.
	 */
	const char *delivery;
	unsigned count; /* in a recovery or an each: how many to list */
	bool untaken;   /* in a retry: the task is given back before any caller has had it */
	uint64_t call;  /* in a put: no other put of this id has this number */
	bool made_id;   /* the library made the id of this put */
	bool joins;     /* this put shares the command and the reply of the previous put */
	struct timerhub_relay_stats *stats;
	uint64_t deadline_ns; /* end of the call's timeout, on the sleeper's clock */
	/* When the request was last sent. Only the shard's thread writes it. */
	uint64_t sent_ns;
	/* True if the server may have carried out the request before the connection was lost. */
	bool in_doubt;
	int result;
	/* Becomes 1 when the request is finished. From then on only its caller may use it. */
	struct eventcount finished;
	/*
	 * If not NULL, called on any thread, perhaps with the relay's lock held, instead of waking
	 * a caller.
	 */
	void (*completed)(struct request *request);
	bool is_own; /* the shard's thread made the request, so no caller waits */
	/* If not NULL, called with the reply to a request that the thread itself has made. */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	/* If not NULL, reads what else is in a successful reply, such as a list. */
	void (*read)(void *arg, const struct reply *reply);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/*
 * The state of reads that ask a server for a task without blocking. Protected by the relay's lock.
 */
struct reads {
	int away;     /* why the shard has no connection to its server, or 0 */
	bool blocked; /* the takers' connection waits for the next ready task */
	bool wanted;  /* a taker has asked for a read that is not sent yet */
	/* When a caller asked for a read that has no reply yet; 0 if there is none. */
	uint64_t asked_ns;
	uint64_t round_ns; /* a round trip of the last handshake */
};

/* The state of a connection to one server. Only the thread for this server writes it. */
struct client {
	struct shared *shared;
	uint32_t shard; /* index of the server */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* unique name of this relay on this server */
	char holder[CLIENT_HOLDER_BYTES];   /* unique name of this relay in its changes */
	/* Sent with each change. Redis refuses changes that carry an older epoch. */
	uint64_t epoch;
	/* Until this time on Redis's clock, servers refuse changes with a lower epoch. */
	uint64_t fence_us;
	uint64_t until_us; /* largest `until` of a change sent so far */
	/* The deadlines of changes are earlier than their callers' timeouts by this, or 0. */
	uint64_t cut_ns;
	/* Redis's time in a reply, and when its request was sent and the reply was read. */
	uint64_t anchor_us;
	uint64_t anchor_sent_ns;
	uint64_t anchor_read_ns;
	uint64_t round_ns; /* a round trip of the last handshake */
	/*
	 * How long a taker has a task. Protected by the relay's lock, because timerhub_relay_take()
	 * reads it too.
	 */
	uint64_t lease_ns;
	struct reads reads; /* written by timerhub_relay_take() too */
	uint64_t looks;     /* number of calls of timerhub_look that were answered */
	uint64_t bells;     /* number of bell messages that were received */
};

/* Returns the times that deliveries_read() needs for a reply. Called with the relay's lock held. */
struct arrival client_arrival(const struct client *client, uint64_t sent_ns, uint64_t now_ns);

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Gives a finished request back to its caller, and wakes him. */
void request_finish(struct request *request);

/* Returns the earliest deadline of the requests in the list, or `next_ns` if that is earlier. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/* Shortens the deadline of each REQUEST_READ to `by_ns`, so that timerhub_relay_take() returns. */
void requests_end_reads(const struct requests *requests, uint64_t by_ns);

/*
 * Finishes expired requests with the error `why`, or -ETIMEDOUT if the server may have carried them
 * out.
 */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/* Returns whether a request changes a task, lease or pause, so Redis must refuse it when late. */
bool request_is_change(const struct request *request);

/* Returns whether a request changes a task, which replicas may have to confirm. */
bool request_is_fact(const struct request *request);

/* Notes that Redis's clock said now_us between the local times sent_ns and read_ns. */
void client_anchor(struct client *client, uint64_t now_us, uint64_t sent_ns, uint64_t read_ns);

/* Converts a change's deadline to Redis's clock, perhaps early but never late. */
uint64_t request_until_us(const struct client *client, const struct request *request);

void request_encode(const struct client *client, const struct request *request,
                    struct bytes *bytes);

/* Encodes several puts as one command, for the function timerhub_puts. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * Returns the result for the caller. If the request was sent twice, a refusal can mean -ETIMEDOUT.
 */
int request_result(const struct request *request, int result);

/* Reads a reply, with the relay's lock held. Returns false if the request must be sent again. */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
