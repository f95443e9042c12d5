/* SPDX-License-Identifier: MIT */
/*
 * Encodes each kind of request as a Redis command, and reads the reply (request.h). This is done by
 * the thread of a shard, which has the connections to one server. It holds the relay's lock when a
 * reply changes deliveries or counters. Tested by tests/relay/test_calls.c, and by wire_test.py,
 * which loses each reply once.
 *
 * request_result(): After a lost connection a change is sent again. If that fails, the first
 * sending may have succeeded, so the result is -ETIMEDOUT, except for a few errors that are certain
 * all the same. But no other put can have an id that the library made. If Redis knows such an id
 * (-EEXIST or -EALREADY), the first sending of this put has succeeded, and the result is 0.
 *
 * request_answer(): The reply to one request begins with its result. The reply to several puts is
 * 0, Redis's time, and for each put its result and its due time. So the result of put `index`,
 * which counts from 1, is at 2 * index. If the first element is not 0, it is an error, and the
 * result of all these puts.
 *
 * If Redis says that a change came after its deadline (-ETIME), the deadline on Redis's clock may
 * have been too early, because its conversion is not exact. The reply has Redis's time, with which
 * request_answer() converts the deadline once more. If it has not passed, the change is sent again.
 */
#include "relay/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/invariant.h"
#include "base/text.h"

#define INFO_BYTES 48
#define PUT_WORDS 8u    /* arguments of timerhub_put */
#define PUTS_WORDS 6u   /* arguments of each put of timerhub_puts */
#define CHANGE_WORDS 3u /* arguments that each other change has: until, holder, epoch */
#define ERRNO_MAX 4095
/*
 * How long Redis may block in a WAIT. If replicas are missing, the next poll of the queue is
 * delayed by this much.
 */
#define WAIT_MS 20u
/*
 * A delivery younger than this and two round trips is handed out without asking Redis about its
 * lease. The time is short, because the lease may have been shortened since the connect.
 */
#define TRUST_NS UINT64_C(100000000)

void requests_append(struct requests *requests, struct request *request)
{
	invariant(!requests->first == !requests->last);
	request->next = NULL;
	if (requests->last)
		requests->last->next = request;
	else
		requests->first = request;
	requests->last = request;
}

struct request *requests_take(struct requests *requests)
{
	struct request *request = requests->first;

	if (request) {
		requests->first = request->next;
		if (!requests->first)
			requests->last = NULL;
	}
	return request;
}

void request_finish(struct request *request)
{
	if (request->completed) {
		request->completed(request);
		return;
	}
	invariant(!request->is_own && eventcount_number(&request->finished) == 0);
	eventcount_set(&request->finished, 1);
	eventcount_wake(&request->finished, 1);
}

uint64_t requests_deadline_ns(const struct requests *requests, uint64_t next_ns)
{
	for (const struct request *one = requests->first; one; one = one->next)
		if (one->deadline_ns < next_ns)
			next_ns = one->deadline_ns;
	return next_ns;
}

void requests_end_reads(const struct requests *requests, uint64_t by_ns)
{
	for (struct request *one = requests->first; one; one = one->next)
		if (one->kind == REQUEST_READ && one->deadline_ns > by_ns)
			one->deadline_ns = by_ns;
}

/*
 * Returns true if the request must be finished now: at its deadline, or at once if the list of
 * servers is wrong (`why` is -EEXIST). A request that Redis may have run (`in_doubt`) is always
 * finished at its deadline.
 */
static bool is_over(const struct request *request, int why, uint64_t now_ns)
{
	return request->deadline_ns <= now_ns || (why == -EEXIST && !request->in_doubt);
}

void requests_expire(struct requests *requests, int why, uint64_t now_ns)
{
	struct requests left = { .first = NULL };
	struct request *request;

	if (requests_deadline_ns(requests, UINT64_MAX) > now_ns && why != -EEXIST)
		return;
	while ((request = requests_take(requests))) {
		if (!is_over(request, why, now_ns)) {
			requests_append(&left, request);
			continue;
		}
		request->result = request->in_doubt || why == 0 ? -ETIMEDOUT : why;
		request_finish(request);
	}
	*requests = left;
}

/* ---- to Redis ---- */

enum effect {
	NO_CHANGE,
	CHANGE, /* changes a lease or a pause only: see request_is_change() */
	FACT,   /* changes a task: see request_is_fact() */
};

/* How one kind of request is sent to Redis, and where it is counted. */
struct kind {
	const char *function; /* a function of timerhub.lua; NULL: a command of Redis */
	const char *keys;     /* the keys of the function, with blanks between them */
	/*
	 * The first arguments of the Redis function. Each letter stands for a member of struct
	 * request: i is id, w when, f flags, e delivery, r reason and c count.
	 */
	const char *words;
	enum effect effect;
	size_t counter; /* offset in struct timerhub_relay_stats; 0: it is not counted */
};

#define COUNTER(name) offsetof(struct timerhub_relay_stats, name)
_Static_assert(COUNTER(put) > 0, "0 is no counter of a call");

static const struct kind kinds[REQUEST_KINDS] = {
	[REQUEST_PUT] = { "put", "due task state seats past", "", FACT, COUNTER(put) },
	[REQUEST_CANCEL] = { "cancel", "due task ready state past", "i", FACT, COUNTER(cancelled) },
	[REQUEST_MOVE] = { "move", "due task ready state past seats", "iwf", FACT, COUNTER(moved) },
	[REQUEST_DONE] = { "done", "due task ready state past seats", "ie", FACT, COUNTER(done) },
	[REQUEST_PARK] = { "park", "due task ready state past dead", "ier", FACT,
	                   COUNTER(retried) },
	[REQUEST_RETRY] = { "retry", "due task ready state past seats dead", "iwe", FACT,
	                    COUNTER(retried) },
	[REQUEST_TOUCH] = { "touch", "task ready state", "ie", CHANGE, 0 },
	[REQUEST_STAT] = { "stat", "due task ready dead past state seats seen", "", NO_CHANGE, 0 },
	[REQUEST_LOOK] = { "look", "due task ready dead past state seats seen", "", NO_CHANGE, 0 },
	[REQUEST_LEAVE] = { "leave", "seats seen state", "i", NO_CHANGE, 0 },
	[REQUEST_FORGET] = { "forget", "ready state", "i", NO_CHANGE, 0 },
	[REQUEST_PAUSE] = { "pause", "due task ready state", "i", CHANGE, 0 },
	[REQUEST_RESUME] = { "resume", "state seats", "", CHANGE, 0 },
	[REQUEST_EACH] = { "each", "due task ready dead state", "fic", NO_CHANGE, 0 },
};

bool request_is_change(const struct request *request)
{
	return kinds[request->kind].effect >= CHANGE;
}

bool request_is_fact(const struct request *request)
{
	return kinds[request->kind].effect == FACT;
}

uint64_t request_until_us(const struct client *client, const struct request *request)
{
	/* Negative if the deadline passed before Redis's clock was read. */
	int64_t left_ns = (int64_t)(request->deadline_ns - client->cut_ns - client->anchor_read_ns);

	return client->anchor_us + (uint64_t)(left_ns / (int64_t)NS_PER_US);
}

static void encode_read(const struct client *client, const struct request *request,
                        struct bytes *bytes)
{
	bool recovers = request->kind == REQUEST_RECOVER;
	char name[KEYS_NAME_BYTES];

	keys_name(&client->keys, name, "ready");
	bytes_command(bytes, 9);
	bytes_text(bytes, "XREADGROUP");
	bytes_text(bytes, "GROUP");
	bytes_text(bytes, "timerhub");
	bytes_text(bytes, client->shared->consumer);
	bytes_text(bytes, "COUNT");
	bytes_number(bytes, recovers ? request->count : 1);
	bytes_text(bytes, "STREAMS");
	bytes_text(bytes, name);
	bytes_text(bytes, recovers ? request->delivery : ">");
}

/*
 * Encodes a poll of the queue (timerhub_look). It carries this relay's counters, which other
 * processes can read by timerhub_stat.
 */
static void encode_look(const struct client *client, struct bytes *bytes)
{
	char info[INFO_BYTES];

	keys_call(&client->keys, bytes, "look", kinds[REQUEST_LOOK].keys, 5);
	bytes_text(bytes, client->name);
	bytes_number(bytes, client->shared->batch);
	bytes_number(bytes, client->shared->horizon_us);
	bytes_number(bytes, client->shared->grace_us);
	(void)snprintf(info, sizeof(info), "%" PRIu64 " %" PRIu64, client->looks, client->bells);
	bytes_text(bytes, info);
}

static void encode_wait(const struct client *client, struct bytes *bytes)
{
	bytes_command(bytes, 3);
	bytes_text(bytes, "WAIT");
	bytes_number(bytes, client->shared->replicas);
	bytes_number(bytes, WAIT_MS);
}

static void encode_put(const struct client *client, const struct request *put, struct bytes *bytes)
{
	char flags[48];
	struct text text = { .buffer = flags, .bytes = sizeof(flags) };

	text_add(&text, put->flags);
	if (put->in_doubt)
		text_add_char(&text, 'd');
	if (put->interval_us > 0) {
		text_add_char(&text, 'e');
		text_add_decimal(&text, put->interval_us, 0);
	}
	bytes_text(bytes, put->id);
	bytes_text(bytes, put->when);
	bytes_word(bytes, flags, text.length);
	bytes_word(bytes, put->data, put->data_len);
	bytes_number(bytes, request_until_us(client, put));
}

static void encode_holder(const struct client *client, struct bytes *bytes)
{
	bytes_text(bytes, client->holder);
	bytes_number(bytes, client->epoch);
}

void requests_encode_puts(const struct client *client, const struct requests *puts,
                          struct bytes *bytes)
{
	const struct request *put;
	unsigned count = 0;

	for (put = puts->first; put; put = put->next)
		count++;
	keys_call(&client->keys, bytes, "puts", kinds[REQUEST_PUT].keys, 2 + PUTS_WORDS * count);
	encode_holder(client, bytes);
	for (put = puts->first; put; put = put->next) {
		encode_put(client, put, bytes);
		bytes_word(bytes, &put->call, sizeof(put->call));
	}
}

static void encode_word(const struct request *request, char word, struct bytes *bytes)
{
	switch (word) {
	case 'i':
		bytes_text(bytes, request->id);
		break;
	case 'w':
		bytes_text(bytes, request->when);
		break;
	case 'f':
		bytes_text(bytes, request->flags);
		break;
	case 'e':
		bytes_text(bytes, request->delivery);
		break;
	case 'r':
		bytes_number(bytes, request->reason);
		break;
	default:
		bytes_number(bytes, request->count);
		break;
	}
}

/*
 * Encodes a request as a call of its Redis function. A change also carries its deadline, the
 * client's name and its epoch, so that Redis can refuse it if it is late.
 */
static void encode_call(const struct client *client, const struct request *request,
                        struct bytes *bytes)
{
	const struct kind *kind = &kinds[request->kind];
	size_t words = strlen(kind->words) + (request_is_change(request) ? CHANGE_WORDS : 0) +
	               request->untaken + (request->periods > 0);

	invariant(kind->function);
	keys_call(&client->keys, bytes, kind->function, kind->keys, (unsigned)words);
	for (const char *word = kind->words; *word; word++)
		encode_word(request, *word, bytes);
	if (request_is_change(request)) {
		bytes_number(bytes, request_until_us(client, request));
		encode_holder(client, bytes);
	}
	if (request->untaken)
		bytes_number(bytes, 1);
	if (request->periods > 0)
		bytes_number(bytes, request->periods);
}

void request_encode(const struct client *client, const struct request *request, struct bytes *bytes)
{
	switch (request->kind) {
	case REQUEST_PUT:
		keys_call(&client->keys, bytes, "put", kinds[REQUEST_PUT].keys, PUT_WORDS);
		encode_put(client, request, bytes);
		encode_holder(client, bytes);
		bytes_word(bytes, &request->call, sizeof(request->call));
		break;
	case REQUEST_READ:
	case REQUEST_RECOVER:
		encode_read(client, request, bytes);
		break;
	case REQUEST_WAIT:
		encode_wait(client, bytes);
		break;
	case REQUEST_TIME:
		bytes_command(bytes, 1);
		bytes_text(bytes, "TIME");
		break;
	case REQUEST_LOOK:
		encode_look(client, bytes);
		break;
	default:
		encode_call(client, request, bytes);
		break;
	}
}

/* ---- from Redis ---- */

/* Adds the counters in the reply of one shard to `stats`. */
static void read_stats(struct timerhub_relay_stats *stats, const struct reply *reply)
{
	static const struct {
		const char *name;
		size_t at;
	} fields[] = {
		{ "waiting", offsetof(struct timerhub_relay_stats, waiting) },
		{ "ready", offsetof(struct timerhub_relay_stats, ready) },
		{ "taken", offsetof(struct timerhub_relay_stats, taken) },
		{ "parked", offsetof(struct timerhub_relay_stats, parked) },
		{ "past", offsetof(struct timerhub_relay_stats, past) },
		{ "relays", offsetof(struct timerhub_relay_stats, relays) },
		{ "promoted", offsetof(struct timerhub_relay_stats, promoted) },
		{ "leases_over", offsetof(struct timerhub_relay_stats, leases_over) },
		{ "parked_ever", offsetof(struct timerhub_relay_stats, parked_ever) },
		{ "orphans", offsetof(struct timerhub_relay_stats, orphans) },
		{ "dead_cut", offsetof(struct timerhub_relay_stats, parked_cut) },
		{ "paused", offsetof(struct timerhub_relay_stats, paused) },
	};

	for (size_t i = 1; i + 1 < reply_count(reply); i += 2)
		for (size_t j = 0; j < sizeof(fields) / sizeof(fields[0]); j++)
			if (reply_is(reply, i, fields[j].name))
				*(uint64_t *)(void *)((char *)stats + fields[j].at) +=
					(uint64_t)reply_integer_at(reply, i + 1);
}

int request_result(const struct request *request, int result)
{
	if (!request->in_doubt || !request_is_change(request) || result == 0 || result == -EINVAL)
		return result;
	if (request->kind == REQUEST_TOUCH && result == -ESTALE)
		return result;
	return request->made_id && (result == -EEXIST || result == -EALREADY) ? 0 : -ETIMEDOUT;
}

static void count(struct client *client, enum request_kind kind)
{
	char *stats = (char *)&client->shared->stats;

	if (kinds[kind].counter > 0)
		++*(uint64_t *)(void *)(stats + kinds[kind].counter);
}

struct arrival client_arrival(const struct client *client, uint64_t sent_ns, uint64_t now_ns)
{
	uint64_t half_ns = client->lease_ns / 2;
	uint64_t trust_ns = TRUST_NS + 2 * client->round_ns;

	return (struct arrival){ sent_ns, now_ns, client->anchor_sent_ns, client->anchor_us,
		                 trust_ns < half_ns ? trust_ns : half_ns };
}

/*
 * Adds the tasks in a reply to the prefetched ones. Returns 1 if any are prefetched now, else 0, or
 * -ENOMEM.
 */
static int answer_read(struct client *client, const struct request *request,
                       const struct reply *reply, uint64_t now_ns)
{
	const struct arrival arrival = client_arrival(client, request->sent_ns, now_ns);
	int result = deliveries_read(&client->shared->deliveries, reply, client->shard, &arrival);

	if (result < 0)
		return result;
	return client->shared->deliveries.prefetched > 0;
}

void client_anchor(struct client *client, uint64_t now_us, uint64_t sent_ns, uint64_t read_ns)
{
	client->anchor_us = now_us;
	client->anchor_sent_ns = sent_ns;
	client->anchor_read_ns = read_ns;
}

static void set_anchor(struct client *client, const struct request *request,
                       const struct reply *reply, size_t now_at, uint64_t now_ns)
{
	client_anchor(client, (uint64_t)reply_integer_at(reply, now_at), request->sent_ns, now_ns);
}

/*
 * Returns the code at index `at` of a reply, which is 0 or a negative errno, or -EPROTO if there is
 * none.
 */
static int read_code(const struct reply *reply, size_t at)
{
	const struct reply *code = reply_at(reply, at);

	if (reply_type(code) != REPLY_INTEGER || reply_integer(code) > 0 ||
	    reply_integer(code) < -ERRNO_MAX)
		return -EPROTO;
	return (int)reply_integer(code);
}

bool request_answer(struct client *client, struct request *request, const struct reply *reply,
                    size_t index, uint64_t now_ns)
{
	size_t at = reply_integer_at(reply, 0) == 0 ? 2 * index : 0;
	int result;

	if (request->kind == REQUEST_READ || request->kind == REQUEST_RECOVER) {
		request->result = answer_read(client, request, reply, now_ns);
		return true;
	}
	result = read_code(reply, at);
	if (request_is_change(request) && result == -ETIME && reply_count(reply) != 3) {
		/*
		 * Redis says that the change came after its deadline. The conversion of the
		 * deadline to Redis's clock may have been wrong, so do it again with the time in
		 * this reply.
		 */
		set_anchor(client, request, reply, 1, now_ns);
		if (request_until_us(client, request) > client->anchor_us)
			return false;
	}
	if (request->kind == REQUEST_TOUCH && result == -ENOENT)
		result = -ESTALE;
	if (result == -ETIME)
		result = -ETIMEDOUT; /* somebody else has sent a fence for this holder */
	if (request->kind == REQUEST_PUT && result == 0)
		set_anchor(client, request, reply, index > 0 ? 1 : 2, now_ns);
	if (request->kind == REQUEST_TOUCH && result == 0)
		set_anchor(client, request, reply, 1, now_ns);
	if (result == 0) {
		count(client, request->kind);
		if (request->kind == REQUEST_STAT)
			read_stats(request->stats, reply);
		if (request->read)
			request->read(request->arg, reply);
	}
	request->result = request_result(request, result);
	return true;
}
