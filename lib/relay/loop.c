/* SPDX-License-Identifier: MIT */
/*
 * The relay's thread: it alone has the connections. It sends what callers have gathered, hands out
 * replies, reads ahead for takers, and sleeps until a reply, a caller, a bell or a time. Holds the
 * lock for memory alone. Tested by tests/relay: test_calls.c, wire_test.py, kill_test.py.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "answer.h"
#include "flag.h"
#include "relay.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define STEP_NS (UINT64_C(1000) * NS_PER_MS) /* for each answer while a connection is made */
#define BACKOFF_FIRST_NS (10 * NS_PER_MS)
#define BACKOFF_MAX_NS (UINT64_C(5000) * NS_PER_MS)
#define BLOCK_MAX_MS UINT64_C(30000)
#define BLOCK_SLACK_NS (UINT64_C(2000) * NS_PER_MS)
#define LINKS 3u

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- callers ---- */

void relay_wake(struct timerhub_relay *relay)
{
	relay->news = true;
	if (relay->idle) {
		relay->idle = false;
		nap_wake(relay->nap);
	}
}

int relay_ask(struct timerhub_relay *relay, struct request *request)
{
	request->deadline_ns = nap_now_ns(relay->nap) + relay->timeout_ns;
	lock_take(&relay->lock);
	requests_append(&relay->gathered, request);
	relay_wake(relay);
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

static bool is_ours(const struct timerhub_relay *relay, const struct request *request)
{
	return request == &relay->look || request == &relay->recover;
}

/* The request is its caller's from then on. */
static void finish(struct request *request)
{
	ticket_set(&request->finished, 1);
	ticket_wake(&request->finished, 1);
}

/* ---- connections ---- */

static uint64_t dice(struct timerhub_relay *relay)
{
	/* xorshift64; it spreads, no more. */
	relay->random ^= relay->random << 13;
	relay->random ^= relay->random >> 7;
	relay->random ^= relay->random << 17;
	return relay->random;
}

static void back_off(struct timerhub_relay *relay, struct link *link, uint64_t now_ns)
{
	link->backoff_ns =
		link->backoff_ns ? sooner(2 * link->backoff_ns, BACKOFF_MAX_NS) : BACKOFF_FIRST_NS;
	link->retry_ns = now_ns + link->backoff_ns / 2 + dice(relay) % (link->backoff_ns / 2);
}

static int open_command(struct timerhub_relay *relay, struct wire *wire)
{
	struct greeting greeting;
	uint64_t sent_ns;
	int result = greet_load(wire, STEP_NS);

	if (result < 0)
		return result;
	sent_ns = nap_now_ns(relay->nap);
	result = greet_create(wire, &relay->keys, &greeting, STEP_NS);
	if (result < 0)
		return result;
	if (greeting.shards != 1)
		return -EOPNOTSUPP;
	if (relay->timeout_ns / NS_PER_US > greeting.past_us)
		return -EINVAL;
	relay->anchor_ns = sent_ns;
	relay->anchor_us = greeting.now_us;
	lock_take(&relay->lock);
	relay->lease_ns = greeting.lease_us * NS_PER_US;
	relay->stats.connects++;
	lock_give(&relay->lock);
	return 0;
}

bool link_open(struct timerhub_relay *relay, struct link *link, uint64_t now_ns)
{
	struct wire *wire = NULL;
	int result;

	if (link->wire)
		return true;
	if (now_ns < link->retry_ns)
		return false;
	result = wire_open(&wire, &relay->address);
	if (result == 0)
		result = greet(wire, &relay->address, STEP_NS);
	if (result == 0 && link == &relay->command)
		result = open_command(relay, wire);
	if (result < 0) {
		wire_close(wire);
		lock_take(&relay->lock);
		relay->why = result;
		lock_give(&relay->lock);
		back_off(relay, link, nap_now_ns(relay->nap));
		return false;
	}
	link->wire = wire;
	link->answer_by_ns = UINT64_MAX;
	return true;
}

/* Requests that a lost connection has had go back, before those that have gathered since. */
static void give_back(struct timerhub_relay *relay)
{
	struct requests back = relay->again;
	struct request *request;

	relay->again = (struct requests){ .first = NULL };
	while ((request = requests_take(&relay->sent))) {
		if (request == &relay->recover) {
			relay->must_recover = true;
		} else if (!is_ours(relay, request)) {
			request->in_doubt = true;
			relay->must_recover |= request->kind == REQUEST_READ;
			requests_append(&back, request);
		}
	}
	lock_take(&relay->lock);
	for (request = back.first; request; request = request->next)
		relay->stats.in_doubt += request->in_doubt;
	while ((request = requests_take(&relay->gathered)))
		requests_append(&back, request);
	relay->gathered = back;
	lock_give(&relay->lock);
}

void link_lose(struct timerhub_relay *relay, struct link *link, int why, uint64_t now_ns)
{
	wire_close(link->wire);
	link->wire = NULL;
	link->answer_by_ns = UINT64_MAX;
	back_off(relay, link, now_ns);
	lock_take(&relay->lock);
	relay->why = why;
	lock_give(&relay->lock);
	if (link == &relay->command) {
		relay->later = 0;
		give_back(relay);
		serve_lost(relay, now_ns);
	} else if (link == &relay->taker && relay->reading) {
		relay->reading = false;
		relay->must_recover = true;
	} else if (link == &relay->bells) {
		relay->confirmed = 0;
		relay->pinged = false;
	}
}

/* ---- the command connection ---- */

static void encode(struct timerhub_relay *relay, struct request *request, uint64_t now_ns)
{
	struct bytes *output = wire_output(relay->command.wire);

	request->sent_ns = now_ns;
	request_encode(relay, request, output);
	requests_append(&relay->sent, request);
}

void relay_send(struct timerhub_relay *relay, struct request *request, uint64_t now_ns)
{
	request->deadline_ns = now_ns + BLOCK_SLACK_NS;
	encode(relay, request, now_ns);
}

static void send_gathered(struct timerhub_relay *relay, uint64_t now_ns)
{
	struct requests gathered;
	struct request *request;

	if (relay->later)
		return; /* until what is on its way is answered, and the connection made again */
	lock_take(&relay->lock);
	gathered = relay->gathered;
	relay->gathered = (struct requests){ .first = NULL };
	lock_give(&relay->lock);
	if (relay->must_recover) {
		relay->must_recover = false;
		relay_send(relay, &relay->recover, now_ns);
	}
	while ((request = requests_take(&gathered)))
		encode(relay, request, now_ns);
}

static void answer_error(struct timerhub_relay *relay, struct request *request, const char *text)
{
	struct answer answer = answer_of(text);

	request->result = answer.error;
	if (answer.kind != ANSWER_REFUSAL)
		relay->later = answer.error;
	if (request == &relay->recover)
		relay->must_recover = answer.kind == ANSWER_LATER;
	else if (answer.kind == ANSWER_LATER && !is_ours(relay, request))
		requests_append(&relay->again, request);
	else if (!is_ours(relay, request))
		finish(request);
}

/* Hand one reply to the request that it is for. */
static void answer(struct timerhub_relay *relay, const struct reply *reply, uint64_t now_ns)
{
	struct request *request = requests_take(&relay->sent);
	bool answered;

	if (!request) {
		relay->later = -EPROTO;
		return;
	}
	if (request == &relay->look)
		serve_answered(relay, reply, now_ns);
	if (reply_type(reply) == REPLY_ERROR) {
		answer_error(relay, request, reply_text(reply));
		return;
	}
	relay->command.backoff_ns = 0;
	if (request == &relay->look)
		return;
	lock_take(&relay->lock);
	answered = request_answer(relay, request, reply, now_ns);
	relay_show_hand(relay);
	lock_give(&relay->lock);
	if (!answered)
		encode(relay, request, now_ns);
	else if (!is_ours(relay, request))
		finish(request);
}

static void read_command(struct timerhub_relay *relay, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(relay->command.wire), found;

	while ((found = wire_next(relay->command.wire, &reply)) == 1) {
		answer(relay, reply, now_ns);
		reply_free(reply);
	}
	if (found < 0)
		result = found;
	if (result == 0 && relay->later && !relay->sent.first)
		result = relay->later;
	if (result < 0)
		link_lose(relay, &relay->command, result, now_ns);
}

/* ---- the takers' connection ---- */

/* How many tasks are wanted now, and for how long Redis is to wait for them. The lock is held. */
static uint32_t wanted(const struct timerhub_relay *relay, uint64_t now_ns, uint64_t *ret_ms)
{
	uint32_t count = relay->waiting;

	*ret_ms = BLOCK_MAX_MS;
	if (relay->deliveries.in_hand > 0)
		return 0;
	if (relay->watched)
		return count > 0 ? count : 1;
	if (relay->wait_until_ns < now_ns + BLOCK_MAX_MS * NS_PER_MS)
		*ret_ms = relay->wait_until_ns > now_ns + NS_PER_MS
		                  ? (relay->wait_until_ns - now_ns) / NS_PER_MS
		                  : 1;
	return count;
}

static void encode_taking(struct timerhub_relay *relay, uint32_t count, uint64_t block_ms)
{
	struct bytes *output = wire_output(relay->taker.wire);
	char name[KEYS_NAME_BYTES];

	keys_name(&relay->keys, name, "ready");
	bytes_command(output, 11);
	bytes_text(output, "XREADGROUP");
	bytes_text(output, "GROUP");
	bytes_text(output, "timerhub");
	bytes_text(output, relay->consumer);
	bytes_text(output, "COUNT");
	bytes_number(output, count);
	bytes_text(output, "BLOCK");
	bytes_number(output, block_ms);
	bytes_text(output, "STREAMS");
	bytes_text(output, name);
	bytes_text(output, ">");
}

static uint64_t pass_taker(struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t block_ms;
	uint32_t count;

	if (relay->reading)
		return relay->taker.answer_by_ns;
	lock_take(&relay->lock);
	count = wanted(relay, now_ns, &block_ms);
	lock_give(&relay->lock);
	/* What was given to us and lost on the way comes first, and is told apart only by that. */
	if (count == 0 || relay->must_recover || !relay->command.wire)
		return UINT64_MAX;
	for (const struct request *one = relay->sent.first; one; one = one->next)
		if (one == &relay->recover)
			return UINT64_MAX;
	if (!link_open(relay, &relay->taker, now_ns))
		return relay->taker.retry_ns;
	encode_taking(relay, count, block_ms);
	relay->reading = true;
	relay->taker.answer_by_ns = now_ns + block_ms * NS_PER_MS + BLOCK_SLACK_NS;
	return relay->taker.answer_by_ns;
}

static int answer_taking(struct timerhub_relay *relay, const struct reply *reply, uint64_t now_ns)
{
	int result;

	if (reply_type(reply) == REPLY_ERROR)
		return answer_of(reply_text(reply)).error;
	relay->reading = false;
	relay->taker.backoff_ns = 0;
	relay->taker.answer_by_ns = UINT64_MAX;
	lock_take(&relay->lock);
	result = deliveries_read(&relay->deliveries, reply, now_ns);
	relay_show_hand(relay);
	lock_give(&relay->lock);
	return result < 0 ? result : 0;
}

static void read_taker(struct timerhub_relay *relay, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(relay->taker.wire), found = 0;
	bool refused = false;

	while (result == 0 && (found = wire_next(relay->taker.wire, &reply)) == 1) {
		result = answer_taking(relay, reply, now_ns);
		refused = result < 0;
		reply_free(reply);
	}
	if (found < 0)
		result = found;
	if (result == 0)
		return;
	link_lose(relay, &relay->taker, result, now_ns);
	/* The group is gone, or the server is no master any more: begin from the beginning. */
	if (refused && result == -EROFS && relay->command.wire)
		link_lose(relay, &relay->command, result, now_ns);
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

/* Answer those whose time is over, and that are not on their way. The lock is held. */
static void expire_gathered(struct timerhub_relay *relay, uint64_t now_ns)
{
	struct requests left = { .first = NULL };
	struct request *request;

	while ((request = requests_take(&relay->gathered))) {
		if (request->deadline_ns > now_ns) {
			requests_append(&left, request);
			continue;
		}
		request->result = request->in_doubt || relay->why == 0 ? -ETIMEDOUT : relay->why;
		finish(request);
	}
	relay->gathered = left;
}

/* Returns when the next request, or an answer, is overdue. */
static uint64_t expire(struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	/* An answer is overdue: the connection is taken for dead, all that is on it is in doubt. */
	if (relay->command.wire && has_expired(&relay->sent, now_ns, &next_ns))
		link_lose(relay, &relay->command, -EHOSTUNREACH, now_ns);
	if (relay->taker.wire && relay->taker.answer_by_ns <= now_ns)
		link_lose(relay, &relay->taker, -EHOSTUNREACH, now_ns);
	if (relay->bells.wire && relay->bells.answer_by_ns <= now_ns)
		link_lose(relay, &relay->bells, -EHOSTUNREACH, now_ns);
	lock_take(&relay->lock);
	relay->news = relay->idle = false;
	if (has_expired(&relay->gathered, now_ns, &next_ns))
		expire_gathered(relay, now_ns);
	if (relay->lease_ns > 0 && now_ns > relay->lease_ns)
		deliveries_expire(&relay->deliveries, now_ns - relay->lease_ns);
	lock_give(&relay->lock);
	return next_ns > now_ns ? next_ns : now_ns;
}

/* ---- the thread ---- */

/* Everything there is to do now. Returns when to come again. */
static uint64_t pass(struct timerhub_relay *relay)
{
	uint64_t now_ns = nap_now_ns(relay->nap);
	uint64_t next_ns = expire(relay, now_ns);

	if (link_open(relay, &relay->command, now_ns))
		send_gathered(relay, now_ns);
	else
		next_ns = sooner(next_ns, relay->command.retry_ns);
	next_ns = sooner(next_ns, pass_taker(relay, now_ns));
	if (relay->serves)
		next_ns = sooner(next_ns, serve_pass(relay, nap_now_ns(relay->nap)));
	/* What was sent just now is overdue some day. */
	(void)has_expired(&relay->sent, 0, &next_ns);
	return next_ns;
}

static void flush(struct timerhub_relay *relay)
{
	struct link *const links[LINKS] = { &relay->command, &relay->taker, &relay->bells };

	for (unsigned i = 0; i < LINKS; i++) {
		int result = links[i]->wire ? wire_flush(links[i]->wire) : 0;

		if (result < 0)
			link_lose(relay, links[i], result, nap_now_ns(relay->nap));
	}
}

/* Sleep, and read what has come. */
static void rest(struct timerhub_relay *relay, uint64_t until_ns)
{
	struct link *const links[LINKS] = { &relay->command, &relay->taker, &relay->bells };
	struct pollfd fds[LINKS + 2];
	const struct wire *polled[LINKS];
	uint64_t now_ns;

	for (unsigned i = 0; i < LINKS; i++) {
		const struct wire *wire = polled[i] = links[i]->wire;

		fds[i] = (struct pollfd){ .fd = wire ? wire_fd(wire) : -1, .events = POLLIN };
		if (wire && wire_has_output(wire))
			fds[i].events |= POLLOUT;
	}
	nap_sleep(relay->nap, fds, LINKS, until_ns);
	now_ns = nap_now_ns(relay->nap);
	for (unsigned i = 0; i < LINKS; i++) {
		if (!(fds[i].revents & ~POLLOUT) || links[i]->wire != polled[i])
			continue; /* it may have been lost with another one */
		if (i == 0)
			read_command(relay, now_ns);
		else if (i == 1)
			read_taker(relay, now_ns);
		else
			serve_read(relay, now_ns);
	}
}

/* Give back what no taker has, and the seat. Nothing depends on it: leases and ladder remain. */
static void say_goodbye(struct timerhub_relay *relay)
{
	struct wire *wire = relay->command.wire;
	struct delivery *one;
	unsigned owed = 0;

	if (!wire || relay->later)
		return;
	for (const struct request *sent = relay->sent.first; sent; sent = sent->next)
		owed++;
	lock_take(&relay->lock);
	for (one = relay->deliveries.first; one; one = one->next, owed++) {
		struct request retry = {
			.kind = REQUEST_RETRY, .id = one->id, .when = "0", .delivery = one->entry
		};

		request_encode(relay, &retry, wire_output(wire));
	}
	lock_give(&relay->lock);
	if (relay->serves) {
		request_encode(relay, &relay->leave, wire_output(wire));
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
	struct timerhub_relay *relay = arg;

	for (;;) {
		uint64_t until_ns = pass(relay);
		bool closing, idle;

		flush(relay);
		lock_take(&relay->lock);
		closing = relay->closing;
		idle = relay->idle = !relay->news;
		lock_give(&relay->lock);
		if (closing)
			break;
		rest(relay, idle ? until_ns : 0);
	}
	say_goodbye(relay);
	return NULL;
}

int relay_start(struct timerhub_relay *relay)
{
	sigset_t all, before;
	int result;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	result = -pthread_create(&relay->thread, NULL, run, relay);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	relay->has_thread = result == 0;
	return result;
}

void relay_stop(struct timerhub_relay *relay)
{
	if (!relay->has_thread)
		return;
	lock_take(&relay->lock);
	relay->closing = true;
	lock_give(&relay->lock);
	nap_wake(relay->nap);
	(void)pthread_join(relay->thread, NULL);
	relay->has_thread = false;
}
