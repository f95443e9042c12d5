/* SPDX-License-Identifier: MIT */
/*
 * Sends the requests of callers to a server, many before the first reply arrives, and finishes them
 * in order (pipeline.h). Tested in tests/relay by test_calls.c, wire_test.py and lives_test.py.
 *
 * give_back() and handshake(): When a connection is lost, changes that were sent on it may still
 * reach the server, even after their callers have got a result on the next connection. So
 * give_back() raises `epoch`, a number in each change, and stores the latest deadline of the
 * changes sent so far in `fence_us`. Each handshake until that time tells the server to refuse
 * changes with a lower number. After that time the server refuses them anyway, because their
 * deadlines have passed.
 *
 * pipeline_why(): -EEXIST says that the list of servers in the config is not that of the queue. If
 * this server was connected before, -EROFS says the same, because callers read the -EEXIST of a put
 * as "the task is there already".
 *
 * is_result_of_fact(): The result 0 says that this request has changed the task. -EEXIST, -EALREADY
 * and -ENOENT say that an earlier request has. Callers rely on both, so replicas must have the
 * change in both cases.
 */
#include "relay/pipeline.h"

#include <errno.h>
#include <stdio.h>

#include "base/invariant.h"
#include "relay/error_reply.h"
#include "relay/handshake.h"

/*
 * How much longer than link_step_ns() the thread waits for the next bytes of a reply to a request
 * of its own.
 */
#define OWN_NS (UINT64_C(1000) * NS_PER_MS)
/*
 * After so long without a reply, a firewall may have forgotten the connection, and what is sent on
 * it is lost.
 */
#define IDLE_NS (UINT64_C(15000) * NS_PER_MS)
/*
 * How many lost deliveries Redis is asked for at a time. If the reply is lost too, RECOVER_LESS
 * divides the number, because the network may not carry so large a reply.
 */
#define RECOVER_MAX 16u
#define RECOVER_LESS 4u
/*
 * The largest number of puts in one command. 64 puts delay other clients of the server by about
 * 0.25 ms.
 */
#define PUTS_MAX 64u
#define PUTS_BYTES 65536u

/* Ignores the reply to TIME: any answer shows that the connection works, even a refusal. */
static void ignore_time(void *arg, const struct reply *reply, uint64_t now_ns)
{
	(void)arg;
	(void)reply;
	(void)now_ns;
}

static void recover_behind(struct pipeline *pipeline, const char *entry)
{
	(void)snprintf(pipeline->recovered, sizeof(pipeline->recovered), "%s", entry);
}

void pipeline_init(struct pipeline *pipeline, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed)
{
	*pipeline = (struct pipeline){
		.client = client,
		.mailbox = mailbox,
		.address = *address,
		.wait = { .kind = REQUEST_WAIT, .is_own = true },
		.time = { .kind = REQUEST_TIME, .is_own = true, .answered = ignore_time },
		.recover = { .kind = REQUEST_RECOVER, .count = RECOVER_MAX, .is_own = true },
		.read = { .kind = REQUEST_READ, .is_own = true },
	};
	pipeline->recover.delivery = pipeline->recovered;
	recover_behind(pipeline, "0");
	link_init(&pipeline->link, seed);
}

bool pipeline_is_open(const struct pipeline *pipeline)
{
	return pipeline->link.wire && !pipeline->later;
}

/* ---- open and lose ---- */

static int handshake(struct pipeline *pipeline, struct wire *wire, uint64_t step_ns)
{
	struct client *client = pipeline->client;
	struct shared *shared = client->shared;
	struct handshake handshake = { 0 };
	uint64_t sent_ns;
	int result = handshake_load(wire, false, step_ns);

	if (result == 0 && shared->replicas > 0)
		result = handshake_wait(wire, step_ns);
	if (result < 0)
		return result;
	sent_ns = sleeper_now_ns();
	result = handshake_create(wire, &client->keys, shared->shard_count, client->shard,
	                          &handshake, step_ns);
	if (result < 0)
		return result;
	client->round_ns = pipeline->link.round_ns = sleeper_now_ns() - sent_ns;
	client->cut_ns = shared->timeout_ns > handshake.past_us * NS_PER_US
	                         ? shared->timeout_ns - handshake.past_us * NS_PER_US
	                         : 0;
	if (client->cut_ns > 0 && client->anchor_us == 0)
		/*
		 * The timeout is too long for this server. Only the first connect fails: if the
		 * server's past_us is made shorter later, an open relay shortens its deadlines by
		 * cut_ns.
		 */
		return -EINVAL;
	if (client->fence_us >= handshake.now_us)
		result = handshake_fence(wire, &client->keys, client->holder, client->epoch,
		                         client->fence_us, step_ns);
	if (result < 0)
		return result;
	client_anchor(client, handshake.now_us, sent_ns, sent_ns + client->round_ns);
	lock_take(&shared->lock);
	client->lease_ns = handshake.lease_us * NS_PER_US;
	client->reads.round_ns = client->round_ns;
	shared->stats.connects++;
	lock_give(&shared->lock);
	return 0;
}

bool pipeline_open(struct pipeline *pipeline, const struct handshake_pause *pause, uint64_t now_ns)
{
	uint64_t step_ns = link_step_ns(&pipeline->link, pipeline->client->shared->timeout_ns);
	struct wire *wire = NULL;
	struct address server;
	int result;

	if (!link_is_due(&pipeline->link, now_ns))
		return pipeline->link.wire != NULL;
	result = handshake_open(&wire, &pipeline->address, &server, pause, step_ns);
	if (result == 0)
		result = handshake(pipeline, wire, step_ns);
	if (result < 0) {
		if (result == -EROFS && wire)
			address_redirect(&pipeline->address, error_reply_words(result), &server);
		wire_close(wire);
		pipeline->why = result;
		link_back_off(&pipeline->link, result, sleeper_now_ns());
		shared_tell(pipeline->client->shared, pipeline->client->shard, result);
		return false;
	}
	link_set(&pipeline->link, wire);
	pipeline->heard_ns = sleeper_now_ns();
	pipeline->server = server;
	pipeline->why = 0;
	return true;
}

/* Called when the reply to a request for lost deliveries was lost too. Asks again, for fewer. */
static void recover_less(struct pipeline *pipeline)
{
	pipeline->must_recover = true;
	if (pipeline->recover.count > 1)
		pipeline->recover.count /= RECOVER_LESS;
}

/*
 * Wakes the callers that wait for the reply to a REQUEST_READ, because the reply has come or is
 * lost.
 */
static void end_read(struct pipeline *pipeline)
{
	struct shared *shared = pipeline->client->shared;
	struct reads *reads = &pipeline->client->reads;

	lock_take(&shared->lock);
	reads->wanted = false;
	reads->asked_ns = 0;
	shared_wake_takers(shared);
	lock_give(&shared->lock);
}

/* Sends a read for one ready task if a caller has asked for it. */
static void send_read(struct pipeline *pipeline, uint64_t now_ns)
{
	struct reads *reads = &pipeline->client->reads;
	bool wanted;

	lock_take(&pipeline->client->shared->lock);
	wanted = reads->wanted;
	reads->wanted = false;
	lock_give(&pipeline->client->shared->lock);
	if (wanted)
		pipeline_send_own(pipeline, &pipeline->read, now_ns);
}

static void give_back(struct pipeline *pipeline)
{
	struct requests back = pipeline->unconfirmed;
	struct request *request;
	bool is_late = false;

	pipeline->unconfirmed = (struct requests){ .first = NULL };
	pipeline->waits = pipeline->must_wait = false;
	pipeline->puts_sent = 0;
	recover_behind(pipeline, "0"); /* the next server may be another */
	for (request = back.first; request; request = request->next)
		request->in_doubt = true;
	while ((request = requests_take(&pipeline->resend)))
		requests_append(&back, request);
	while ((request = requests_take(&pipeline->sent))) {
		if (request == &pipeline->recover)
			recover_less(pipeline);
		pipeline->must_recover |= request->kind == REQUEST_READ;
		is_late |= request_is_change(request);
		if (request->is_own)
			continue;
		request->in_doubt = true;
		requests_append(&back, request);
	}
	if (is_late) {
		pipeline->client->fence_us = pipeline->client->until_us;
		pipeline->client->epoch++;
	}
	mailbox_put_back(pipeline->mailbox, &back);
	end_read(pipeline);
}

void pipeline_lose(struct pipeline *pipeline, int why, uint64_t now_ns)
{
	shared_tell(pipeline->client->shared, pipeline->client->shard, why);
	link_lose(&pipeline->link, why, now_ns);
	pipeline->why = why;
	pipeline->later = 0;
	give_back(pipeline);
}

int pipeline_why(const struct pipeline *pipeline)
{
	int why = pipeline->later ? pipeline->later : pipeline->why;

	return why == -EEXIST && pipeline->client->anchor_us > 0 ? -EROFS : why;
}

/* ---- send ---- */

/* Returns whether replicas must confirm a request before it is finished. */
static bool is_fact(const struct pipeline *pipeline, const struct request *request)
{
	return pipeline->client->shared->replicas > 0 && request_is_fact(request);
}

/*
 * Returns true for results that say what Redis has stored. If the config asks for replicas, the
 * caller gets such a result only when enough replicas have stored it too.
 */
static bool is_result_of_fact(int result)
{
	return result == 0 || result == -EEXIST || result == -EALREADY || result == -ENOENT;
}

static void note_sent(struct pipeline *pipeline, struct request *request, uint64_t now_ns)
{
	struct client *client = pipeline->client;

	if (request_is_change(request) && request_until_us(client, request) > client->until_us)
		client->until_us = request_until_us(client, request);
	request->sent_ns = now_ns;
	request->joins = false;
	pipeline->must_wait |= is_fact(pipeline, request);
	requests_append(&pipeline->sent, request);
}

static void encode_request(struct pipeline *pipeline, struct request *request, uint64_t now_ns)
{
	request_encode(pipeline->client, request, wire_output(pipeline->link.wire));
	note_sent(pipeline, request, now_ns);
}

/* Encodes all puts of the list as one command, and empties the list. */
static void encode_puts(struct pipeline *pipeline, struct requests *puts, uint64_t now_ns)
{
	struct bytes *output = wire_output(pipeline->link.wire);
	struct request *put = puts->first;

	if (!put)
		return;
	if (put->next)
		requests_encode_puts(pipeline->client, puts, output);
	else
		request_encode(pipeline->client, put, output);
	note_sent(pipeline, requests_take(puts), now_ns);
	while ((put = requests_take(puts))) {
		note_sent(pipeline, put, now_ns);
		put->joins = true;
	}
	pipeline->puts_sent++;
	pipeline->put_sent_ns = now_ns;
}

static uint64_t own_deadline_ns(const struct pipeline *pipeline, uint64_t now_ns)
{
	return now_ns + OWN_NS +
	       link_step_ns(&pipeline->link, pipeline->client->shared->timeout_ns);
}

void pipeline_send_own(struct pipeline *pipeline, struct request *request, uint64_t now_ns)
{
	request->deadline_ns = own_deadline_ns(pipeline, now_ns);
	encode_request(pipeline, request, now_ns);
}

/*
 * Encodes all requests of the list. Puts come last, so that they can share commands. That is
 * allowed because calls that run at the same time have no order.
 */
static void encode_all(struct pipeline *pipeline, struct requests *gathered, uint64_t now_ns)
{
	struct requests puts = { .first = NULL };
	struct request *request;
	unsigned count = 0;
	size_t bytes = 0;

	while ((request = requests_take(gathered))) {
		if (request->kind != REQUEST_PUT) {
			encode_request(pipeline, request, now_ns);
			continue;
		}
		if (count == PUTS_MAX || bytes + request->data_len > PUTS_BYTES) {
			encode_puts(pipeline, &puts, now_ns);
			count = 0;
			bytes = 0;
		}
		requests_append(&puts, request);
		count++;
		bytes += request->data_len;
	}
	encode_puts(pipeline, &puts, now_ns);
}

/* Sends one WAIT at a time, to ask Redis how many replicas have all changes sent so far. */
static void wait_for_replicas(struct pipeline *pipeline, uint64_t now_ns)
{
	if (!pipeline->must_wait || pipeline->waits)
		return;
	pipeline->must_wait = false;
	pipeline->waits = true;
	pipeline_send_own(pipeline, &pipeline->wait, now_ns);
}

/*
 * Sends TIME before the requests if the connection was silent for IDLE_NS. A firewall may have
 * forgotten the connection, and TIME shows that long before the callers' timeouts end.
 */
static void ask_if_alive(struct pipeline *pipeline, const struct requests *gathered,
                         uint64_t now_ns)
{
	if (!gathered->first || pipeline->sent.first || now_ns - pipeline->heard_ns < IDLE_NS)
		return;
	pipeline->time.deadline_ns =
		now_ns + link_step_ns(&pipeline->link, pipeline->client->shared->timeout_ns);
	encode_request(pipeline, &pipeline->time, now_ns);
}

/* Encodes queued requests into the connection's buffer, which shard_flush() sends afterwards. */
uint64_t pipeline_send(struct pipeline *pipeline, uint64_t now_ns)
{
	struct requests gathered = { .first = NULL };
	uint64_t next_ns;

	/*
	 * The server has answered that it refuses requests at present. So send nothing more on this
	 * connection. It is closed when all replies have come, and the requests that are left go
	 * out on the next one.
	 */
	if (pipeline->later)
		return UINT64_MAX;
	next_ns = mailbox_take(pipeline->mailbox, &gathered,
	                       pipeline->puts_sent > 0 ? pipeline->put_sent_ns : 0, now_ns);
	if (pipeline->must_recover) {
		pipeline->must_recover = false;
		pipeline_send_own(pipeline, &pipeline->recover, now_ns);
	}
	ask_if_alive(pipeline, &gathered, now_ns);
	send_read(pipeline, now_ns);
	encode_all(pipeline, &gathered, now_ns);
	wait_for_replicas(pipeline, now_ns);
	return next_ns;
}

bool pipeline_recover(const struct pipeline *pipeline)
{
	for (const struct request *one = pipeline->sent.first; one; one = one->next)
		if (one == &pipeline->recover)
			return true;
	return pipeline->must_recover;
}

unsigned pipeline_owed(const struct pipeline *pipeline)
{
	unsigned owed = 0;

	for (const struct request *sent = pipeline->sent.first; sent; sent = sent->next)
		owed += !sent->joins;
	return owed;
}

/* ---- answers ---- */

/*
 * Reads the reply to a WAIT, which says how many replicas have all earlier changes. If enough
 * replicas have them, the requests that waited for that are finished.
 */
static void answer_wait(struct pipeline *pipeline, const struct reply *reply)
{
	struct request *request;

	pipeline->waits = false;
	if (reply_integer(reply) < pipeline->client->shared->replicas) {
		pipeline->must_wait = true;
		return;
	}
	while ((request = requests_take(&pipeline->unconfirmed)))
		request_finish(request);
}

static void answer_recover(struct pipeline *pipeline, const struct reply *reply)
{
	const struct reply *entries = reply_at(reply_at(reply, 0), 1);
	size_t count = reply_count(entries);

	pipeline->must_recover = count == pipeline->recover.count;
	recover_behind(pipeline, pipeline->must_recover
	                                 ? reply_text(reply_at(reply_at(entries, count - 1), 0))
	                                 : "0");
	if (!pipeline->must_recover)
		pipeline->recover.count = RECOVER_MAX;
}

static void answer_error(struct pipeline *pipeline, struct request *request, const char *text)
{
	struct error_reply answer = error_reply_of(text);

	address_redirect(&pipeline->address, text, &pipeline->server);
	request->result = request_result(request, answer.error);
	if (answer.kind != ERROR_REPLY_REFUSAL || request == &pipeline->wait)
		pipeline->later = answer.error;
	if (request == &pipeline->recover) {
		pipeline->must_recover = answer.kind == ERROR_REPLY_LATER;
		recover_behind(pipeline, "0");
	} else if (answer.kind == ERROR_REPLY_LATER && !request->is_own) {
		requests_append(&pipeline->resend, request);
	} else if (!request->is_own) {
		request_finish(request);
	}
}

/*
 * Gives a request its reply. If several puts share the reply, `index` says which part of it is this
 * put's.
 */
static void answer_request(struct pipeline *pipeline, struct request *request,
                           const struct reply *reply, size_t index, uint64_t now_ns)
{
	struct shared *shared = pipeline->client->shared;
	struct requests again = { .first = NULL };
	bool answered;

	lock_take(&shared->lock);
	answered = request_answer(pipeline->client, request, reply, index, now_ns);
	shared_show_prefetched(shared);
	lock_give(&shared->lock);
	if (request == &pipeline->recover)
		answer_recover(pipeline, reply);
	if (request == &pipeline->read)
		end_read(pipeline);
	if (!answered) {
		requests_append(&again, request);
		encode_all(pipeline, &again, now_ns);
	} else if (is_result_of_fact(request->result) && is_fact(pipeline, request)) {
		requests_append(&pipeline->unconfirmed, request);
	} else if (!request->is_own) {
		request_finish(request);
	}
}

static void answer_one(struct pipeline *pipeline, struct request *request,
                       const struct reply *reply, size_t index, uint64_t now_ns)
{
	if (request->answered)
		request->answered(request->arg, reply, now_ns);
	/*
	 * A newer version of this library has changed the queue's keys, so this version cannot use
	 * the queue any more. Close the connection; the next handshake is refused.
	 */
	if (reply_integer_at(reply, 0) == -EOPNOTSUPP)
		pipeline->later = -EOPNOTSUPP;
	if (reply_type(reply) == REPLY_ERROR) {
		answer_error(pipeline, request, reply_text(reply));
		if (request == &pipeline->read)
			end_read(pipeline);
		return;
	}
	pipeline->link.backoff_ns = 0;
	if (request == &pipeline->wait)
		answer_wait(pipeline, reply);
	else if (!request->answered)
		answer_request(pipeline, request, reply, index, now_ns);
}

static bool is_shared(const struct pipeline *pipeline)
{
	return pipeline->sent.first && pipeline->sent.first->joins;
}

/* Gives a reply to the request at the head of `sent`, and to the puts that share its command. */
static void take_answer(struct pipeline *pipeline, const struct reply *reply, uint64_t now_ns)
{
	struct request *request = requests_take(&pipeline->sent);
	size_t index;

	if (!request) {
		pipeline->later = -EPROTO;
		return;
	}
	invariant(!request->joins && (request->kind != REQUEST_PUT || pipeline->puts_sent > 0));
	pipeline->puts_sent -= request->kind == REQUEST_PUT;
	index = is_shared(pipeline) ? 1 : 0;
	answer_one(pipeline, request, reply, index, now_ns);
	while (is_shared(pipeline))
		answer_one(pipeline, requests_take(&pipeline->sent), reply, ++index, now_ns);
}

/*
 * Gives the thread's own requests more time, because bytes of a reply have come. The deadlines of
 * callers stay, because the callers have chosen them.
 */
static void put_off_own(struct pipeline *pipeline, uint64_t now_ns)
{
	for (struct request *one = pipeline->sent.first; one; one = one->next)
		if (one->is_own)
			one->deadline_ns = own_deadline_ns(pipeline, now_ns);
}

int pipeline_read(struct pipeline *pipeline, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(pipeline->link.wire), found;

	if (result == 0)
		put_off_own(pipeline, now_ns);
	pipeline->heard_ns = now_ns;
	while ((found = wire_next(pipeline->link.wire, &reply)) == 1) {
		take_answer(pipeline, reply, now_ns);
		reply_free(reply);
	}
	if (found < 0)
		return found;
	return result == 0 && pipeline->later && !pipeline->sent.first ? pipeline->later : result;
}

int pipeline_expire(struct pipeline *pipeline, uint64_t now_ns, uint64_t *ret_next_ns)
{
	requests_expire(&pipeline->unconfirmed, 0, now_ns);
	requests_expire(&pipeline->resend, pipeline->later, now_ns);
	*ret_next_ns = requests_deadline_ns(&pipeline->unconfirmed, UINT64_MAX);
	*ret_next_ns = requests_deadline_ns(&pipeline->resend, *ret_next_ns);
	*ret_next_ns = requests_deadline_ns(&pipeline->sent, *ret_next_ns);
	/*
	 * If a reply is overdue, close the connection, because then nobody knows what became of the
	 * requests on it.
	 */
	return pipeline->link.wire && requests_deadline_ns(&pipeline->sent, UINT64_MAX) <= now_ns
	               ? -EHOSTUNREACH
	               : 0;
}
