/* SPDX-License-Identifier: MIT */
/* See commands.h. Tested by tests/relay: test_calls.c, wire_test.py, kill_test.py. */
#include "relay/commands.h"

#include <errno.h>

#include "relay/answer.h"
#include "relay/handshake.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define STEP_NS (UINT64_C(1000) * NS_PER_MS) /* timeout of each reply during the handshake */
#define OWN_NS (UINT64_C(2000) * NS_PER_MS)  /* timeout of each reply to the thread's own request */
/* Most puts in one command; 64 puts delay other clients of the server by about 0.25 ms. */
#define PUTS_MAX 64u
#define PUTS_BYTES 65536u

void commands_init(struct commands *commands, struct client *client, struct mailbox *mailbox,
                   const struct address *address, uint64_t seed)
{
	*commands = (struct commands){
		.client = client,
		.mailbox = mailbox,
		.address = *address,
		.wait = { .kind = REQUEST_WAIT, .is_own = true },
		.recover = { .kind = REQUEST_RECOVER, .is_own = true },
	};
	link_init(&commands->link, seed);
}

bool commands_are_open(const struct commands *commands)
{
	return commands->link.wire && !commands->later;
}

/* ---- open and lose ---- */

static int handshake(struct commands *commands, struct wire *wire)
{
	struct client *client = commands->client;
	struct shared *shared = client->shared;
	struct handshake handshake;
	uint64_t sent_ns;
	int result = handshake_load(wire, STEP_NS);

	if (result == 0 && shared->replicas > 0)
		result = handshake_wait(wire, STEP_NS);
	if (result < 0)
		return result;
	sent_ns = sleeper_now_ns();
	result = handshake_create(wire, &client->keys, shared->shard_count, client->shard,
	                          &handshake, STEP_NS);
	if (result < 0)
		return result;
	if (shared->timeout_ns / NS_PER_US > handshake.past_us)
		return -EINVAL;
	client->anchor_ns = sent_ns;
	client->anchor_us = handshake.now_us;
	lock_take(&shared->lock);
	shared->lease_ns = handshake.lease_us * NS_PER_US;
	shared->stats.connects++;
	lock_give(&shared->lock);
	return 0;
}

bool commands_open(struct commands *commands, uint64_t now_ns)
{
	struct wire *wire = NULL;
	struct address server;
	int result;

	if (!link_is_due(&commands->link, now_ns))
		return commands->link.wire != NULL;
	result = handshake_open(&wire, &commands->address, &server, STEP_NS);
	if (result == 0)
		result = handshake(commands, wire);
	if (result < 0) {
		wire_close(wire);
		commands->why = result;
		link_back_off(&commands->link, result, sleeper_now_ns());
		shared_tell(commands->client->shared, commands->client->shard, result);
		return false;
	}
	link_set(&commands->link, wire);
	commands->server = server;
	return true;
}

/* Put the requests of a lost connection back, before the requests queued since. */
static void give_back(struct commands *commands)
{
	struct requests back = commands->unconfirmed;
	struct request *request;

	commands->unconfirmed = (struct requests){ .first = NULL };
	commands->waits = commands->must_wait = false;
	commands->puts_sent = 0;
	for (request = back.first; request; request = request->next)
		request->in_doubt = true;
	while ((request = requests_take(&commands->resend)))
		requests_append(&back, request);
	while ((request = requests_take(&commands->sent))) {
		commands->must_recover |=
			request->kind == REQUEST_RECOVER || request->kind == REQUEST_READ;
		if (request->is_own)
			continue;
		request->in_doubt = true;
		requests_append(&back, request);
	}
	mailbox_put_back(commands->mailbox, &back);
}

void commands_lose(struct commands *commands, int why, uint64_t now_ns)
{
	shared_tell(commands->client->shared, commands->client->shard, why);
	link_lose(&commands->link, why, now_ns);
	commands->why = why;
	commands->later = 0;
	give_back(commands);
}

/* ---- send ---- */

/* Returns whether replicas must confirm the request before it is finished. */
static bool is_fact(const struct commands *commands, const struct request *request)
{
	return commands->client->shared->replicas > 0 && request->kind <= REQUEST_RETRY;
}

static void note_sent(struct commands *commands, struct request *request, uint64_t now_ns)
{
	request->sent_ns = now_ns;
	request->joins = false;
	commands->must_wait |= is_fact(commands, request);
	requests_append(&commands->sent, request);
}

static void encode(struct commands *commands, struct request *request, uint64_t now_ns)
{
	request_encode(commands->client, request, wire_output(commands->link.wire));
	note_sent(commands, request, now_ns);
}

/* Send several puts as one command. After the call `puts` is empty. */
static void encode_puts(struct commands *commands, struct requests *puts, uint64_t now_ns)
{
	struct bytes *output = wire_output(commands->link.wire);
	struct request *put = puts->first;

	if (!put)
		return;
	if (put->next)
		requests_encode_puts(commands->client, puts, output);
	else
		request_encode(commands->client, put, output);
	note_sent(commands, requests_take(puts), now_ns);
	while ((put = requests_take(puts))) {
		note_sent(commands, put, now_ns);
		put->joins = true;
	}
	commands->puts_sent++;
	commands->put_sent_ns = now_ns;
}

void commands_send_own(struct commands *commands, struct request *request, uint64_t now_ns)
{
	request->deadline_ns = now_ns + OWN_NS;
	encode(commands, request, now_ns);
}

/* Concurrent calls have no order, so all puts are sent together, after the other requests. */
static void encode_all(struct commands *commands, struct requests *gathered, uint64_t now_ns)
{
	struct requests puts = { .first = NULL };
	struct request *request;
	unsigned count = 0;
	size_t bytes = 0;

	while ((request = requests_take(gathered))) {
		if (request->kind != REQUEST_PUT) {
			encode(commands, request, now_ns);
			continue;
		}
		if (count == PUTS_MAX || bytes + request->data_len > PUTS_BYTES) {
			encode_puts(commands, &puts, now_ns);
			count = 0;
			bytes = 0;
		}
		requests_append(&puts, request);
		count++;
		bytes += request->data_len;
	}
	encode_puts(commands, &puts, now_ns);
}

/* Ask how many replicas hold all changes sent so far, by one WAIT. */
static void wait_for_replicas(struct commands *commands, uint64_t now_ns)
{
	if (!commands->must_wait || commands->waits)
		return;
	commands->must_wait = false;
	commands->waits = true;
	commands_send_own(commands, &commands->wait, now_ns);
}

uint64_t commands_send(struct commands *commands, uint64_t now_ns)
{
	struct requests gathered = { .first = NULL };
	uint64_t next_ns;

	/*
	 * After a refusal, send no command until all replies have come and a new connection is
	 * open.
	 */
	if (commands->later)
		return UINT64_MAX;
	next_ns = mailbox_take(commands->mailbox, &gathered,
	                       commands->puts_sent > 0 ? commands->put_sent_ns : 0, now_ns);
	if (commands->must_recover) {
		commands->must_recover = false;
		commands_send_own(commands, &commands->recover, now_ns);
	}
	encode_all(commands, &gathered, now_ns);
	wait_for_replicas(commands, now_ns);
	return next_ns;
}

bool commands_recover(const struct commands *commands)
{
	for (const struct request *one = commands->sent.first; one; one = one->next)
		if (one == &commands->recover)
			return true;
	return commands->must_recover;
}

unsigned commands_owed(const struct commands *commands)
{
	unsigned owed = 0;

	for (const struct request *sent = commands->sent.first; sent; sent = sent->next)
		owed += !sent->joins;
	return owed;
}

/* ---- answers ---- */

/* The replicas that a WAIT counts hold all changes that were answered before the WAIT was sent. */
static void answer_wait(struct commands *commands, const struct reply *reply)
{
	struct request *request;

	commands->waits = false;
	if (reply_integer(reply) < commands->client->shared->replicas) {
		commands->must_wait = true;
		return;
	}
	while ((request = requests_take(&commands->unconfirmed)))
		request_finish(request);
}

static void answer_error(struct commands *commands, struct request *request, const char *text)
{
	struct answer answer = answer_of(text);

	request->result = answer.error;
	if (answer.kind != ANSWER_REFUSAL || request == &commands->wait)
		commands->later = answer.error;
	if (request == &commands->recover)
		commands->must_recover = answer.kind == ANSWER_LATER;
	else if (answer.kind == ANSWER_LATER && !request->is_own)
		requests_append(&commands->resend, request);
	else if (!request->is_own)
		request_finish(request);
}

/* Give a reply, or one part of a shared reply, to a request. */
static void answer_request(struct commands *commands, struct request *request,
                           const struct reply *reply, size_t index, uint64_t now_ns)
{
	struct shared *shared = commands->client->shared;
	struct requests puts = { .first = NULL };
	bool answered;

	lock_take(&shared->lock);
	answered = request_answer(commands->client, request, reply, index, now_ns);
	shared_show_prefetched(shared);
	lock_give(&shared->lock);
	if (!answered) {
		requests_append(&puts, request); /* only a put can need a second sending */
		encode_puts(commands, &puts, now_ns);
	} else if (request->result == 0 && is_fact(commands, request)) {
		requests_append(&commands->unconfirmed, request);
	} else if (!request->is_own) {
		request_finish(request);
	}
}

static void answer_one(struct commands *commands, struct request *request,
                       const struct reply *reply, size_t index, uint64_t now_ns)
{
	if (request->answered)
		request->answered(request->arg, reply, now_ns);
	if (reply_type(reply) == REPLY_ERROR) {
		answer_error(commands, request, reply_text(reply));
		return;
	}
	commands->link.backoff_ns = 0;
	if (request == &commands->wait)
		answer_wait(commands, reply);
	else if (!request->answered)
		answer_request(commands, request, reply, index, now_ns);
}

static bool is_shared(const struct commands *commands)
{
	return commands->sent.first && commands->sent.first->joins;
}

/* Give a reply to its request, or to all requests that share it. */
static void answer(struct commands *commands, const struct reply *reply, uint64_t now_ns)
{
	struct request *request = requests_take(&commands->sent);
	size_t index;

	if (!request) {
		commands->later = -EPROTO;
		return;
	}
	commands->puts_sent -= request->kind == REQUEST_PUT;
	index = is_shared(commands) ? 1 : 0;
	answer_one(commands, request, reply, index, now_ns);
	while (is_shared(commands))
		answer_one(commands, requests_take(&commands->sent), reply, ++index, now_ns);
}

int commands_read(struct commands *commands, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(commands->link.wire), found;

	while ((found = wire_next(commands->link.wire, &reply)) == 1) {
		answer(commands, reply, now_ns);
		reply_free(reply);
	}
	if (found < 0)
		return found;
	return result == 0 && commands->later && !commands->sent.first ? commands->later : result;
}

int commands_expire(struct commands *commands, uint64_t now_ns, uint64_t *ret_next_ns)
{
	requests_expire(&commands->unconfirmed, 0, now_ns);
	*ret_next_ns = requests_deadline_ns(
		&commands->sent, requests_deadline_ns(&commands->unconfirmed, UINT64_MAX));
	/* If one reply is overdue, the outcome of every request on that connection is unknown. */
	return commands->link.wire && requests_deadline_ns(&commands->sent, UINT64_MAX) <= now_ns
	               ? -EHOSTUNREACH
	               : 0;
}
