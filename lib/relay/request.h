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
	 * Letters that say how a put or move is to be done, as the Redis function reads them. For a
	 * REQUEST_EACH, the state of the tasks to list: "waiting", "taken" or "parked".
	 */
	const char *flags;
	uint64_t interval_us; /* in a put of a periodic task: its interval */
	uint64_t periods;     /* in a done of a periodic task: how many periods it ends */
	uint32_t reason;      /* in a park: the reason */
	const void *data;     /* data of the task that a put stores */
	size_t data_len;
	/*
	 * The stream entry by which a task was delivered, in a request to finish, retry, park or
	 * touch that task. In a REQUEST_RECOVER, which asks for a list of entries, the entry after
	 * which the list begins.
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
	 * If this pointer is not NULL, the function is called when the request is finished, and no
	 * caller is woken. Any thread may call it, perhaps with the relay's lock held.
	 */
	void (*completed)(struct request *request);
	bool is_own; /* the shard's thread made the request, so no caller waits */
	/*
	 * Called with the reply to a request that the shard's thread has made itself; NULL if
	 * nobody wants the reply.
	 */
	void (*answered)(void *arg, const struct reply *reply, uint64_t now_ns);
	/*
	 * Called when a caller's request has succeeded, to read data from the reply for which
	 * struct request has no member, such as a list of tasks. It is NULL if there is no such
	 * data.
	 */
	void (*read)(void *arg, const struct reply *reply);
	void *arg;
};

struct requests {
	struct request *first;
	struct request *last;
};

/*
 * The state of the reads by which the server is asked for a task that is ready now, without waiting
 * for one. Protected by the relay's lock.
 */
struct reads {
	int away;     /* why the shard has no connection to its server, or 0 */
	bool blocked; /* the takers' connection waits for the next ready task */
	bool wanted;  /* a taker has asked for a read that is not sent yet */
	/*
	 * When a caller asked for a read that the server has not answered yet; 0 if there is no
	 * such read.
	 */
	uint64_t asked_ns;
	uint64_t round_ns; /* a round trip of the last handshake */
};

/*
 * What this process knows as a client of one server. After the open, only the thread that sends the
 * requests for that server writes this struct. The exception is `reads`, which callers of
 * timerhub_relay_take() write too.
 */
struct client {
	struct shared *shared;
	uint32_t shard; /* index of the server */
	struct keys keys;
	char name[TIMERHUB_RELAY_ID_BYTES]; /* unique name of this relay on this server */
	char holder[CLIENT_HOLDER_BYTES];   /* unique name of this relay in its changes */
	/*
	 * A number that grows by 1 when a connection is lost with unanswered changes. Each change
	 * carries the number. After such a loss the network may still deliver old changes, so the
	 * server is told to refuse changes with lower numbers until fence_us, a time on Redis's
	 * clock. After fence_us it refuses the old changes because their own deadlines have passed.
	 */
	uint64_t epoch;
	uint64_t fence_us;
	uint64_t until_us; /* largest `until` of a change sent so far */
	/*
	 * By how much a change's deadline on the server is earlier than the end of the caller's
	 * timeout. The server remembers a task's id for past_us, and a put that is repeated later
	 * could add its task twice. So a timeout longer than past_us is cut to past_us. Otherwise
	 * cut_ns is 0.
	 */
	uint64_t cut_ns;
	/*
	 * The local time that corresponds to anchor_us on Redis's clock: the time at which the
	 * request was sent whose reply said anchor_us.
	 */
	uint64_t anchor_ns;
	uint64_t anchor_us; /* Redis's time at the anchor */
	uint64_t round_ns;  /* a round trip of the last handshake */
	/*
	 * How long a taker has a task before it is delivered again. Written with the relay's lock
	 * held, because callers of take read it.
	 */
	uint64_t lease_ns;
	struct reads reads;
	uint64_t looks; /* number of calls of timerhub_look that were answered */
	uint64_t bells; /* number of bell messages that were received */
};

/*
 * Returns when a reply with deliveries was asked for (sent_ns) and when it was read (now_ns), and
 * what else is needed to compute the age of each delivery. Called with the relay's lock held, which
 * protects lease_ns.
 */
struct arrival client_arrival(const struct client *client, uint64_t sent_ns, uint64_t now_ns);

void requests_append(struct requests *requests, struct request *request);
struct request *requests_take(struct requests *requests);

/* Gives a finished request back to its caller, and wakes him. */
void request_finish(struct request *request);

/* Returns the earliest deadline of the requests in the list, or `next_ns` if that is earlier. */
uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns);

/*
 * Moves the deadline of every REQUEST_READ in the list to `by_ns`, unless it is earlier, so that no
 * thread in timerhub_relay_take() waits longer for the answer.
 */
void requests_end_reads(const struct requests *requests, uint64_t by_ns);

/*
 * Finishes each request whose timeout has ended. Its result is `why`, the error that keeps requests
 * from being sent. But the result is -ETIMEDOUT if `why` is 0, or if the request is in_doubt (the
 * server may have carried it out). If `why` is -EEXIST, the list of servers is wrong, and waiting
 * does not help. Then requests that are not in_doubt are finished before their timeouts.
 */
void requests_expire(struct requests *requests, int why, uint64_t now_ns);

/*
 * Returns whether a request changes a task or a lease. Redis must refuse such a request if it
 * arrives late. So it carries its deadline, and the client's name and epoch, a number that grows
 * when a connection is lost.
 */
bool request_is_change(const struct request *request);

/*
 * Returns whether a request changes a task, so that replicas may have to confirm it before it is
 * finished.
 */
bool request_is_fact(const struct request *request);

/* Converts the deadline of a request to Redis's clock, in microseconds. */
uint64_t request_until_us(const struct client *client, const struct request *request);

void request_encode(const struct client *client, const struct request *request,
                    struct bytes *bytes);

/* Encodes several puts as one command, for the function timerhub_puts. */
void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes);

/*
 * Returns the result for the caller, given the code in the reply. If the request was sent twice, a
 * refusal may mean that the first sending has succeeded. Then the result is -ETIMEDOUT, or 0 for a
 * put whose id the library has made, because nobody else puts that id.
 */
int request_result(const struct request *request, int result);

/*
 * Reads the reply to a request and sets its result. If several puts share the reply, `index` is the
 * put's number, from 1; otherwise it is 0. Returns false if the request must be sent again. Called
 * with the relay's lock held.
 */
bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns);

#endif
