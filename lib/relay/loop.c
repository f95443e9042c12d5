/* SPDX-License-Identifier: MIT */
/*
 * A shard's thread: it alone has the connections. It sends what callers have gathered, hands out
 * replies, reads ahead for takers, and sleeps until a reply, a caller, a bell or a time. Holds the
 * lock for memory alone. Tested by tests/relay: test_calls.c, wire_test.py, kill_test.py.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "flag.h"
#include "relay.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define STEP_NS (UINT64_C(1000) * NS_PER_MS) /* for each answer while a connection is made */
#define BLOCK_MAX_MS UINT64_C(30000)
#define BLOCK_SLACK_NS (UINT64_C(2000) * NS_PER_MS)
#define LINKS 3u
#define PUTS_MAX 64u /* in one command: others' commands wait for a quarter of a millisecond */
#define PUTS_BYTES 65536u

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- callers ---- */

/* The lock is held. */
static void wake(struct shard *shard)
{
	shard->news = true;
	if (shard->idle) {
		shard->idle = false;
		nap_wake(shard->nap);
	}
}

void relay_wake(struct timerhub_relay *relay)
{
	for (uint32_t i = 0; i < relay->shard_count; i++)
		wake(&relay->shards[i]);
}

int shard_ask(struct shard *shard, struct request *request)
{
	struct timerhub_relay *relay = shard->relay;

	request->deadline_ns = nap_now_ns() + relay->timeout_ns;
	lock_take(&relay->lock);
	requests_append(&shard->gathered, request);
	if (request->kind != REQUEST_PUT || !shard->holds)
		wake(shard);
	lock_give(&relay->lock);
	while (ticket_number(&request->finished) == 0)
		ticket_wait(&request->finished, 0, UINT64_MAX);
	return request->result;
}

void relay_show_hand(struct timerhub_relay *relay)
{
	if (relay->deliveries.in_hand == 0)
		return;
	flag_raise(relay->ready_fd);
	if (relay->waiting > 0) {
		ticket_set(&relay->takers, ticket_number(&relay->takers) + 1);
		ticket_wake(&relay->takers, relay->deliveries.in_hand);
	}
}

static bool is_ours(const struct shard *shard, const struct request *request)
{
	return request == &shard->look || request == &shard->recover || request == &shard->wait;
}

/* What replicas have to hold before its caller is told. */
static bool is_fact(const struct shard *shard, const struct request *request)
{
	return shard->relay->replicas > 0 && request->kind <= REQUEST_RETRY;
}

/* The request is its caller's from then on. */
static void finish(struct request *request)
{
	ticket_set(&request->finished, 1);
	ticket_wake(&request->finished, 1);
}

/* ---- connections ---- */

static uint64_t dice(struct shard *shard)
{
	/* xorshift64; it spreads, no more. */
	shard->random ^= shard->random << 13;
	shard->random ^= shard->random >> 7;
	shard->random ^= shard->random << 17;
	return shard->random;
}

void shard_tell(const struct shard *shard, int error)
{
	const struct watcher *watcher = &shard->relay->watcher;

	if (watcher->tell)
		watcher->tell(watcher->arg, shard->index, error);
}

static int open_command(struct shard *shard, struct wire *wire)
{
	struct greeting greeting;
	uint64_t sent_ns;
	int result = greet_load(wire, STEP_NS);

	if (result == 0 && shard->relay->replicas > 0)
		result = greet_wait(wire, STEP_NS);
	if (result < 0)
		return result;
	sent_ns = nap_now_ns();
	result = greet_create(wire, &shard->keys, shard->relay->shard_count, shard->index,
	                      &greeting, STEP_NS);
	if (result < 0)
		return result;
	if (shard->relay->timeout_ns / NS_PER_US > greeting.past_us)
		return -EINVAL;
	shard->anchor_ns = sent_ns;
	shard->anchor_us = greeting.now_us;
	lock_take(&shard->relay->lock);
	shard->relay->lease_ns = greeting.lease_us * NS_PER_US;
	shard->relay->stats.connects++;
	lock_give(&shard->relay->lock);
	return 0;
}

/*
 * The commands go to this server now. A taker's connection to another one would wait for ever. One
 * to this server is kept: a task that the server is sending on it would be lost until its lease.
 */
static void set_server(struct shard *shard, const struct address *server, uint64_t now_ns)
{
	if (shard->taker.wire && (strcmp(shard->server.host, server->host) != 0 ||
	                          strcmp(shard->server.port, server->port) != 0))
		link_lose(shard, &shard->taker, -EROFS, now_ns);
	shard->server = *server;
}

bool link_open(struct shard *shard, struct link *link, uint64_t now_ns)
{
	struct address server;
	struct wire *wire = NULL;
	int result;

	if (link->wire)
		return true;
	if (now_ns < link->retry_ns)
		return false;
	if (link == &shard->command)
		result = greet_open(&wire, &shard->address, &server, STEP_NS);
	else
		result = greet_open(&wire, &shard->server, NULL, STEP_NS);
	if (result == 0 && link == &shard->command)
		result = open_command(shard, wire);
	if (result < 0) {
		wire_close(wire);
		lock_take(&shard->relay->lock);
		shard->why = result;
		lock_give(&shard->relay->lock);
		link_back_off(link, result, dice(shard), nap_now_ns());
		if (link == &shard->command)
			shard_tell(shard, result);
		return false;
	}
	link->wire = wire;
	link->answer_by_ns = LINK_NEVER;
	if (link == &shard->command)
		set_server(shard, &server, now_ns);
	return true;
}

/* Requests that a lost connection has had go back, before those that have gathered since. */
static void give_back(struct shard *shard)
{
	struct requests back = shard->unsure;
	struct request *request;

	shard->unsure = (struct requests){ .first = NULL };
	shard->waits = shard->must_wait = false;
	shard->puts_sent = 0;
	for (request = back.first; request; request = request->next)
		request->in_doubt = true;
	while ((request = requests_take(&shard->again)))
		requests_append(&back, request);
	while ((request = requests_take(&shard->sent))) {
		if (request == &shard->recover) {
			shard->must_recover = true;
		} else if (!is_ours(shard, request)) {
			request->in_doubt = true;
			shard->must_recover |= request->kind == REQUEST_READ;
			requests_append(&back, request);
		}
	}
	lock_take(&shard->relay->lock);
	for (request = back.first; request; request = request->next)
		shard->relay->stats.in_doubt += request->in_doubt;
	while ((request = requests_take(&shard->gathered)))
		requests_append(&back, request);
	shard->gathered = back;
	shard->holds = false;
	lock_give(&shard->relay->lock);
}

void link_lose(struct shard *shard, struct link *link, int why, uint64_t now_ns)
{
	wire_close(link->wire);
	link->wire = NULL;
	link->answer_by_ns = LINK_NEVER;
	link_back_off(link, why, dice(shard), now_ns);
	lock_take(&shard->relay->lock);
	shard->why = why;
	lock_give(&shard->relay->lock);
	if (link == &shard->command) {
		shard_tell(shard, why);
		shard->later = 0;
		give_back(shard);
		serve_lost(shard, now_ns);
		/* The bells of a server that is no master any more are heard, and not counted. */
		if (shard->bells.wire)
			link_lose(shard, &shard->bells, why, now_ns);
	} else if (link == &shard->taker && shard->reading) {
		shard->reading = false;
		shard->must_recover = true;
	} else if (link == &shard->bells) {
		shard->confirmed = 0;
		shard->pinged = false;
	}
}

/* ---- the command connection ---- */

static void note_sent(struct shard *shard, struct request *request, uint64_t now_ns)
{
	request->sent_ns = now_ns;
	request->joins = false;
	shard->must_wait |= is_fact(shard, request);
	requests_append(&shard->sent, request);
}

static void encode(struct shard *shard, struct request *request, uint64_t now_ns)
{
	request_encode(shard, request, wire_output(shard->command.wire));
	note_sent(shard, request, now_ns);
}

/* Several puts as one command. `puts` is empty then. */
static void encode_puts(struct shard *shard, struct requests *puts, uint64_t now_ns)
{
	struct request *put = puts->first;

	if (!put)
		return;
	if (put->next)
		requests_encode_puts(shard, puts, wire_output(shard->command.wire));
	else
		request_encode(shard, put, wire_output(shard->command.wire));
	note_sent(shard, requests_take(puts), now_ns);
	while ((put = requests_take(puts))) {
		note_sent(shard, put, now_ns);
		put->joins = true;
	}
	shard->puts_sent++;
	shard->put_sent_ns = now_ns;
}

void shard_send(struct shard *shard, struct request *request, uint64_t now_ns)
{
	request->deadline_ns = now_ns + BLOCK_SLACK_NS;
	encode(shard, request, now_ns);
}

/*
 * Take what is to be sent now. While a put is under way, others wait for its reply, and then share
 * a command, which costs the server a third of what as many commands do. They wait for hold_ns at
 * most: if the way to the server is long, waiting for a reply would halve what many callers put.
 * Returns when to come for those that wait.
 */
static uint64_t take_gathered(struct shard *shard, struct requests *taken, uint64_t now_ns)
{
	struct requests held = { .first = NULL };
	struct request *request;
	uint64_t until_ns;

	lock_take(&shard->relay->lock);
	until_ns = shard->puts_sent > 0 ? shard->put_sent_ns + shard->relay->hold_ns : now_ns;
	while ((request = requests_take(&shard->gathered)))
		requests_append(request->kind == REQUEST_PUT && until_ns > now_ns ? &held : taken,
		                request);
	shard->gathered = held;
	shard->holds = held.first != NULL;
	lock_give(&shard->relay->lock);
	return held.first ? until_ns : UINT64_MAX;
}

/* Calls under way at once have no order: puts go together, behind the others. */
static uint64_t send_gathered(struct shard *shard, uint64_t now_ns)
{
	struct requests gathered = { .first = NULL }, puts = { .first = NULL };
	struct request *request;
	unsigned count = 0;
	size_t bytes = 0;
	uint64_t next_ns;

	if (shard->later) /* until what is on its way is answered, and the connection made again */
		return UINT64_MAX;
	next_ns = take_gathered(shard, &gathered, now_ns);
	if (shard->must_recover) {
		shard->must_recover = false;
		shard_send(shard, &shard->recover, now_ns);
	}
	while ((request = requests_take(&gathered))) {
		if (request->kind != REQUEST_PUT) {
			encode(shard, request, now_ns);
			continue;
		}
		if (count == PUTS_MAX || bytes + request->data_len > PUTS_BYTES) {
			encode_puts(shard, &puts, now_ns);
			count = 0;
			bytes = 0;
		}
		requests_append(&puts, request);
		count++;
		bytes += request->data_len;
	}
	encode_puts(shard, &puts, now_ns);
	return next_ns;
}

/* Ask how many replicas hold the facts sent so far: once for all that have gathered meanwhile. */
static void wait_for_replicas(struct shard *shard, uint64_t now_ns)
{
	if (!shard->must_wait || shard->waits || shard->later)
		return;
	shard->must_wait = false;
	shard->waits = true;
	shard_send(shard, &shard->wait, now_ns);
}

/* What was answered before a WAIT was is held by all that the WAIT has counted. */
static void answer_wait(struct shard *shard, const struct reply *reply)
{
	struct request *request;

	shard->waits = false;
	if (reply_integer(reply) < shard->relay->replicas) {
		shard->must_wait = true;
		return;
	}
	while ((request = requests_take(&shard->unsure)))
		finish(request);
}

static void answer_error(struct shard *shard, struct request *request, const char *text)
{
	struct answer answer = answer_of(text);

	request->result = answer.error;
	if (answer.kind != ANSWER_REFUSAL || request == &shard->wait)
		shard->later = answer.error;
	if (request == &shard->recover)
		shard->must_recover = answer.kind == ANSWER_LATER;
	else if (answer.kind == ANSWER_LATER && !is_ours(shard, request))
		requests_append(&shard->again, request);
	else if (!is_ours(shard, request))
		finish(request);
}

/* Give a reply, or its part, to one request. */
static void answer_request(struct shard *shard, struct request *request, const struct reply *reply,
                           size_t place, uint64_t now_ns)
{
	struct requests puts = { .first = NULL };
	bool answered;

	if (request == &shard->look)
		serve_answered(shard, reply, now_ns);
	if (reply_type(reply) == REPLY_ERROR) {
		answer_error(shard, request, reply_text(reply));
		return;
	}
	shard->command.backoff_ns = 0;
	if (request == &shard->wait)
		answer_wait(shard, reply);
	if (request == &shard->look || request == &shard->wait)
		return;
	lock_take(&shard->relay->lock);
	answered = request_answer(shard, request, reply, place, now_ns);
	relay_show_hand(shard->relay);
	lock_give(&shard->relay->lock);
	if (!answered) {
		requests_append(&puts, request); /* nothing else is sent once more */
		encode_puts(shard, &puts, now_ns);
	} else if (request->result == 0 && is_fact(shard, request)) {
		requests_append(&shard->unsure, request);
	} else if (!is_ours(shard, request)) {
		finish(request);
	}
}

static bool is_shared(const struct shard *shard)
{
	return shard->sent.first && shard->sent.first->joins;
}

/* Give one reply to the request that it is for, or to those that share it. */
static void answer(struct shard *shard, const struct reply *reply, uint64_t now_ns)
{
	struct request *request = requests_take(&shard->sent);
	size_t place;

	if (!request) {
		shard->later = -EPROTO;
		return;
	}
	shard->puts_sent -= request->kind == REQUEST_PUT;
	place = is_shared(shard) ? 1 : 0;
	answer_request(shard, request, reply, place, now_ns);
	while (is_shared(shard))
		answer_request(shard, requests_take(&shard->sent), reply, ++place, now_ns);
}

static void read_command(struct shard *shard, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(shard->command.wire), found;

	while ((found = wire_next(shard->command.wire, &reply)) == 1) {
		answer(shard, reply, now_ns);
		reply_free(reply);
	}
	if (found < 0)
		result = found;
	if (result == 0 && shard->later && !shard->sent.first)
		result = shard->later;
	if (result < 0)
		link_lose(shard, &shard->command, result, now_ns);
}

/* ---- the takers' connection ---- */

/* How many tasks are wanted now, and for how long Redis is to wait for them. The lock is held. */
static uint32_t wanted(const struct shard *shard, uint64_t now_ns, uint64_t *ret_ms)
{
	uint32_t count = shard->relay->waiting;

	*ret_ms = BLOCK_MAX_MS;
	if (shard->relay->deliveries.in_hand > 0 || shard->relay->stopped)
		return 0;
	if (shard->relay->watched)
		return count > 0 ? count : 1;
	if (shard->relay->wait_until_ns < now_ns + BLOCK_MAX_MS * NS_PER_MS)
		*ret_ms = shard->relay->wait_until_ns > now_ns + NS_PER_MS
		                  ? (shard->relay->wait_until_ns - now_ns) / NS_PER_MS
		                  : 1;
	return count;
}

static void encode_taking(struct shard *shard, uint32_t count, uint64_t block_ms)
{
	struct bytes *output = wire_output(shard->taker.wire);
	char name[KEYS_NAME_BYTES];

	keys_name(&shard->keys, name, "ready");
	bytes_command(output, 11);
	bytes_text(output, "XREADGROUP");
	bytes_text(output, "GROUP");
	bytes_text(output, "timerhub");
	bytes_text(output, shard->relay->consumer);
	bytes_text(output, "COUNT");
	bytes_number(output, count);
	bytes_text(output, "BLOCK");
	bytes_number(output, block_ms);
	bytes_text(output, "STREAMS");
	bytes_text(output, name);
	bytes_text(output, ">");
}

static uint64_t pass_taker(struct shard *shard, uint64_t now_ns)
{
	uint64_t block_ms;
	uint32_t count;

	if (shard->reading)
		return shard->taker.answer_by_ns;
	lock_take(&shard->relay->lock);
	count = wanted(shard, now_ns, &block_ms);
	lock_give(&shard->relay->lock);
	/* What was given to us and lost on the way comes first, and is told apart only by that. */
	if (count == 0 || shard->must_recover || !shard->command.wire)
		return UINT64_MAX;
	for (const struct request *one = shard->sent.first; one; one = one->next)
		if (one == &shard->recover)
			return UINT64_MAX;
	if (!link_open(shard, &shard->taker, now_ns))
		return shard->taker.retry_ns;
	encode_taking(shard, count, block_ms);
	shard->reading = true;
	shard->taker.answer_by_ns = now_ns + block_ms * NS_PER_MS + BLOCK_SLACK_NS;
	return shard->taker.answer_by_ns;
}

static int answer_taking(struct shard *shard, const struct reply *reply, uint64_t now_ns)
{
	int result;

	if (reply_type(reply) == REPLY_ERROR)
		return answer_of(reply_text(reply)).error;
	shard->reading = false;
	shard->taker.backoff_ns = 0;
	shard->taker.answer_by_ns = LINK_NEVER;
	lock_take(&shard->relay->lock);
	result = deliveries_read(&shard->relay->deliveries, reply, shard->index, now_ns);
	relay_show_hand(shard->relay);
	lock_give(&shard->relay->lock);
	return result < 0 ? result : 0;
}

static void read_taker(struct shard *shard, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(shard->taker.wire), found = 0;
	bool refused = false;

	while (result == 0 && (found = wire_next(shard->taker.wire, &reply)) == 1) {
		result = answer_taking(shard, reply, now_ns);
		refused = result < 0;
		reply_free(reply);
	}
	if (found < 0)
		result = found;
	if (result == 0)
		return;
	link_lose(shard, &shard->taker, result, now_ns);
	/* The group is gone, or the server is no master any more: begin from the beginning. */
	if (refused && result == -EROFS && shard->command.wire)
		link_lose(shard, &shard->command, result, now_ns);
}

/* ---- time ---- */

static bool has_expired(const struct requests *requests, uint64_t now_ns, uint64_t *next_ns)
{
	bool expired = false;

	for (const struct request *one = requests->first; one; one = one->next) {
		expired |= one->deadline_ns <= now_ns;
		*next_ns = sooner(*next_ns, one->deadline_ns);
	}
	return expired;
}

/* Answer those whose time is over. */
static void expire_requests(struct shard *shard, struct requests *requests, uint64_t now_ns)
{
	struct requests left = { .first = NULL };
	struct request *request;

	while ((request = requests_take(requests))) {
		if (request->deadline_ns > now_ns) {
			requests_append(&left, request);
			continue;
		}
		request->result = request->in_doubt || requests == &shard->unsure || shard->why == 0
		                          ? -ETIMEDOUT
		                          : shard->why;
		finish(request);
	}
	*requests = left;
}

/* Returns when the next request, or an answer, is overdue. */
static uint64_t expire(struct shard *shard, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	/* An answer is overdue: the connection is taken for dead, all that is on it is in doubt. */
	if (shard->command.wire && has_expired(&shard->sent, now_ns, &next_ns))
		link_lose(shard, &shard->command, -EHOSTUNREACH, now_ns);
	if (shard->taker.wire && shard->taker.answer_by_ns <= now_ns)
		link_lose(shard, &shard->taker, -EHOSTUNREACH, now_ns);
	if (shard->bells.wire && shard->bells.answer_by_ns <= now_ns)
		link_lose(shard, &shard->bells, -EHOSTUNREACH, now_ns);
	if (has_expired(&shard->unsure, now_ns, &next_ns))
		expire_requests(shard, &shard->unsure, now_ns);
	lock_take(&shard->relay->lock);
	shard->news = shard->idle = false;
	if (has_expired(&shard->gathered, now_ns, &next_ns))
		expire_requests(shard, &shard->gathered, now_ns);
	if (shard->relay->lease_ns > 0 && now_ns > shard->relay->lease_ns)
		deliveries_expire(&shard->relay->deliveries, now_ns - shard->relay->lease_ns);
	lock_give(&shard->relay->lock);
	return next_ns > now_ns ? next_ns : now_ns;
}

/* ---- the thread ---- */

/* Everything there is to do now. Returns when to come again. */
static uint64_t pass(struct shard *shard)
{
	uint64_t now_ns = nap_now_ns();
	uint64_t next_ns = expire(shard, now_ns);

	if (!link_open(shard, &shard->command, now_ns))
		return sooner(next_ns, shard->command.retry_ns);
	next_ns = sooner(next_ns, send_gathered(shard, now_ns));
	wait_for_replicas(shard, now_ns);
	next_ns = sooner(next_ns, pass_taker(shard, now_ns));
	if (shard->relay->serves)
		next_ns = sooner(next_ns, serve_pass(shard, nap_now_ns()));
	/* What was sent just now is overdue some day. */
	(void)has_expired(&shard->sent, 0, &next_ns);
	return next_ns;
}

/* False: a connection was found to be lost. */
static bool flush(struct shard *shard)
{
	struct link *const links[LINKS] = { &shard->command, &shard->taker, &shard->bells };
	bool good = true;

	for (unsigned i = 0; i < LINKS; i++) {
		int result = links[i]->wire ? wire_flush(links[i]->wire) : 0;

		if (result < 0)
			link_lose(shard, links[i], result, nap_now_ns());
		good &= result == 0;
	}
	return good;
}

/* Sleep, and read what has come. */
static void rest(struct shard *shard, uint64_t until_ns)
{
	struct link *const links[LINKS] = { &shard->command, &shard->taker, &shard->bells };
	struct pollfd fds[LINKS + 2];
	const struct wire *polled[LINKS];
	uint64_t now_ns;

	for (unsigned i = 0; i < LINKS; i++) {
		const struct wire *wire = polled[i] = links[i]->wire;

		fds[i] = (struct pollfd){ .fd = wire ? wire_fd(wire) : -1, .events = POLLIN };
		if (wire && wire_has_output(wire))
			fds[i].events |= POLLOUT;
	}
	nap_sleep(shard->nap, fds, LINKS, until_ns);
	now_ns = nap_now_ns();
	for (unsigned i = 0; i < LINKS; i++) {
		if (!(fds[i].revents & ~POLLOUT) || links[i]->wire != polled[i])
			continue; /* it may have been lost with another one */
		if (i == 0)
			read_command(shard, now_ns);
		else if (i == 1)
			read_taker(shard, now_ns);
		else
			serve_read(shard, now_ns);
	}
}

/* Give back what no taker has, and the seat. Nothing depends on it: leases and ladder remain. */
static void say_goodbye(struct shard *shard)
{
	struct wire *wire = shard->command.wire;
	struct delivery *one;
	unsigned owed = 0;

	if (!wire || shard->later)
		return;
	for (const struct request *sent = shard->sent.first; sent; sent = sent->next)
		owed += !sent->joins;
	lock_take(&shard->relay->lock);
	for (one = shard->relay->deliveries.first; one; one = one->next) {
		struct request retry = {
			.kind = REQUEST_RETRY, .id = one->id, .when = "0", .delivery = one->entry
		};

		if (one->shard != shard->index)
			continue;
		request_encode(shard, &retry, wire_output(wire));
		owed++;
	}
	lock_give(&shard->relay->lock);
	if (shard->relay->serves) {
		request_encode(shard, &shard->leave, wire_output(wire));
		owed++;
	}
	while (owed-- > 0) {
		struct reply *reply = NULL;

		if (wire_call(wire, &reply, STEP_NS) < 0)
			return;
		reply_free(reply);
	}
}

static void *run(void *arg)
{
	struct shard *shard = arg;

	for (;;) {
		uint64_t until_ns = pass(shard);
		bool closing, idle;

		if (!flush(shard))
			until_ns = 0;
		lock_take(&shard->relay->lock);
		closing = shard->relay->closing;
		idle = shard->idle = !shard->news;
		lock_give(&shard->relay->lock);
		if (closing)
			break;
		rest(shard, idle ? until_ns : 0);
	}
	say_goodbye(shard);
	return NULL;
}

int shard_start(struct shard *shard)
{
	sigset_t all, before;
	int result;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	result = -pthread_create(&shard->thread, NULL, run, shard);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	shard->has_thread = result == 0;
	return result;
}

void shards_end(struct timerhub_relay *relay)
{
	lock_take(&relay->lock);
	relay->closing = true;
	lock_give(&relay->lock);
	for (uint32_t i = 0; i < relay->shard_count; i++)
		if (relay->shards[i].has_thread)
			nap_wake(relay->shards[i].nap);
	for (uint32_t i = 0; i < relay->shard_count; i++) {
		if (relay->shards[i].has_thread)
			(void)pthread_join(relay->shards[i].thread, NULL);
		relay->shards[i].has_thread = false;
	}
}
