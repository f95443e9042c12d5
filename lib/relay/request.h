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
	/*
	 * The due time or delay of a put, move or retry, as the text that the Redis function reads.
	 */
	char when[REQUEST_WHEN_BYTES];
	/*
	 * In a put or a move: letters that tell the Redis function how to make the change. In a
	 * REQUEST_EACH: which tasks to list, "waiting", "taken" or "parked".
	 */
	const char *flags;
	uint64_t interval_us; /* in a put of a periodic task: its interval */
	uint64_t periods;     /* in a done of a periodic task: how many periods it ends */
	uint32_t reason;      /* in a park: the reason */
	const void *data;     /* data of the task that a put stores */
	size_t data_len;
	/*
	 * The id of the stream entry that delivered the task. In a REQUEST_RECOVER: the entry after
	 * which Redis goes on listing, or "0" to begin.
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
	/*
	 * True if the connection was lost after the request was sent, so that nobody knows whether
	 * the server has carried it out.
	 */
	bool in_doubt;
	int result;
	/* Becomes 1 when the request is finished. From then on only its caller may use it. */
	struct eventcount finished;
	/*
	 * Function to call when the request is finished, on any thread, with or without the relay's
	 * lock. NULL: the waiting caller is woken instead.
	 */
	void (*completed)(struct request *request);
	bool is_own; /* the shard's thread made the request, so no caller waits */
	/*
	 * Called with the reply to a request that the shard's thread has made itself; NULL if
	 * nobody wants the reply.
	 */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	/*
	 * Called with the reply if the request has succeeded, to read data for which this struct
	 * has no member, such as a list of tasks. May be NULL.
	 */
	void (*read)(void *arg, const struct reply *reply);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/*
 * Reads that ask one server for a ready task, and return at once if there is none. The relay's lock
 * protects the fields.
 */
struct reads {
	int away;     /* why the shard has no connection to its server, or 0 */
	bool blocked; /* the takers' connection waits for the next ready task */
	bool wanted;  /* a taker has asked for a read that is not sent yet */
	/* Time at which a caller asked for the read that is still unanswered; 0: there is none. */
	uint64_t asked_ns;
	uint64_t round_ns; /* a round trip of the last handshake */
};

/*
 * What this process knows as a client of one server. After the open, only the server's thread
 * writes it, except for `reads`, which timerhub_relay_take() writes too.
 */
struct client {
	struct shared *shared;
	uint32_t shard; /* index of the server */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* unique name of this relay on this server */
	char holder[CLIENT_HOLDER_BYTES];   /* unique name of this relay in its changes */
	/*
	 * A number in each change. It grows when a connection with unanswered changes is lost. The
	 * server then refuses changes with lower numbers.
	 */
	uint64_t epoch;
	/*
	 * Until this time on Redis's clock, the server must refuse the changes that were sent on an
	 * earlier, lost connection (they have a lower epoch). 0: no connection with unanswered
	 * changes was lost.
	 */
	uint64_t fence_us;
	uint64_t until_us; /* largest `until` of a change sent so far */
	/*
	 * Each change has a deadline in Redis, which usually is the end of the call's timeout. If
	 * the setting `past` was made shorter than that timeout, the deadline is earlier by this
	 * time (README.md, invariant 5).
	 */
	uint64_t cut_ns;
	/*
	 * The last known time of Redis's clock. It was read between the local times anchor_sent_ns
	 * and anchor_read_ns.
	 */
	uint64_t anchor_us;
	uint64_t anchor_sent_ns;
	uint64_t anchor_read_ns;
	uint64_t round_ns; /* a round trip of the last handshake */
	/*
	 * The length of a lease. A worker must end a task within this time, or it is delivered
	 * again. Guarded by the relay's lock, because timerhub_relay_take() reads it on other
	 * threads.
	 */
	uint64_t lease_ns;
	struct reads reads;
	uint64_t looks; /* number of calls of timerhub_look that were answered */
	uint64_t bells; /* number of bell messages that were received */
};

/*
 * Returns what deliveries_read() needs to compute how old the deliveries in a reply are. The
 * request was sent at sent_ns, and its reply was read at now_ns. Called with the relay's lock held.
 */
struct arrival client_arrival(const struct client *client, uint64_t sent_ns, uint64_t now_ns);

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Gives a finished request back to its caller, and wakes him. */
void request_finish(struct request *request);

/* Returns the earliest deadline of the requests in the list, or `next_ns` if that is earlier. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/*
 * Lowers the deadline of each REQUEST_READ to the time `by_ns`, so that timerhub_relay_take() waits
 * for this server no longer than that.
 */
void requests_end_reads(const struct requests *requests, uint64_t by_ns);

/*
 * Finishes the requests whose timeout has ended. The result is `why`, the connection's error, or
 * -ETIMEDOUT if there is none or if Redis may have run the request (`in_doubt`).
 *
 * If the list of servers is wrong (`why` is -EEXIST), requests that are not in doubt are finished
 * before their timeout.
 */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/*
 * Returns whether a request changes a task or a lease, or pauses or resumes the queue. Such a
 * request carries its deadline, the client's name and its epoch, because Redis must refuse it if it
 * is late.
 */
bool request_is_change(const struct request *request);

/*
 * Returns whether a request changes a task, so that replicas may have to confirm it before it is
 * finished.
 */
bool request_is_fact(const struct request *request);

/* Notes that Redis's clock said now_us between the local times sent_ns and read_ns. */
void client_anchor(struct client *client, uint64_t now_us, uint64_t sent_ns, uint64_t read_ns);

/* Returns the deadline of a change on Redis's clock. It may be a little early, but never late. */
uint64_t request_until_us(const struct client *client, const struct request *request);

void request_encode(const struct client *client, const struct request *request,
                    struct bytes *bytes);

/* Encodes several puts as one command, for the function timerhub_puts. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * Converts the server's `result` to what the call returns. That is -ETIMEDOUT if nobody knows
 * whether a change was made.
 */
int request_result(const struct request *request, int result);

/*
 * Reads a request's reply. Returns false if the request must be sent again. If several puts share
 * the reply, `index` is 1 for the first of them, 2 for the second and so on. Otherwise `index` is
 * 0. Called with the relay's lock held.
 */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
