/* SPDX-License-Identifier: MIT */
/*
 * The relay's thread as an alarm clock: it listens to its bells, and looks when its seat says so.
 * Tested by tests/relay: test_seat.c in virtual time, test_calls.c and kill_test.py on a server.
 * Model: tests/models/relay.pml.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "relay.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define ANSWER_NS (UINT64_C(1000) * NS_PER_MS)
#define CHANNELS 2u
#define PAUSE_FIRST_NS (100 * NS_PER_MS)
#define PAUSE_MAX_NS (UINT64_C(5000) * NS_PER_MS)
/* Relays that come back together look one after another, in the order that they had. */
#define SPREAD_NS NS_PER_MS
#define SPREAD_MAX_NS ANSWER_NS
/* Places of the reply to look. */
enum {
	LOOK_MOVED = 1,
	LOOK_WAIT,
	LOOK_RANK,
	LOOK_NOW,
	LOOK_MORE,
	LOOK_AGAIN = 8,
	LOOK_BUCKETS = 10
};

static void subscribe(struct timerhub_relay *relay)
{
	struct bytes *output = wire_output(relay->bells.wire);
	char part[KEYS_NAME_BYTES / 2], name[KEYS_NAME_BYTES];

	bytes_command(output, 1 + CHANNELS);
	bytes_text(output, "SUBSCRIBE");
	(void)snprintf(part, sizeof(part), "bell:%s", relay->name);
	keys_name(&relay->keys, name, part);
	bytes_text(output, name);
	keys_name(&relay->keys, name, "bell");
	bytes_text(output, name);
}

/* False: it does not listen yet, and is about to. A relay that cannot listen at all looks too. */
static bool listen(struct timerhub_relay *relay, uint64_t now_ns)
{
	bool was_open = relay->bells.wire != NULL;

	if (!link_open(relay, &relay->bells, now_ns))
		return true;
	if (!was_open) {
		subscribe(relay);
		relay->bells.answer_by_ns = now_ns + ANSWER_NS;
		relay->ping_ns = now_ns + relay->horizon_us * NS_PER_US;
	}
	return relay->confirmed == CHANNELS;
}

/* A connection that has died silently is found by what it does not answer. */
static void ping(struct timerhub_relay *relay, uint64_t now_ns)
{
	struct bytes *output = wire_output(relay->bells.wire);

	relay->ping_ns = now_ns + relay->horizon_us * NS_PER_US;
	bytes_command(output, 1);
	bytes_text(output, "PING");
	relay->pinged = true;
	relay->bells.answer_by_ns = now_ns + ANSWER_NS;
}

static uint64_t look(struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t due_ns = seat_due_ns(&relay->seat);

	if (relay->looking || !relay->command.wire || relay->later)
		return UINT64_MAX;
	if (due_ns > now_ns)
		return due_ns;
	relay->looking = true;
	seat_sent(&relay->seat, now_ns);
	relay_send(relay, &relay->look, now_ns);
	return UINT64_MAX;
}

uint64_t serve_pass(struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (!listen(relay, now_ns))
		return relay->bells.answer_by_ns;
	if (!relay->bells.wire)
		next_ns = relay->bells.retry_ns;
	else if (!relay->pinged && relay->seat.rank < 2 && now_ns >= relay->ping_ns)
		ping(relay, now_ns);
	if (relay->bells.wire && relay->bells.answer_by_ns < next_ns)
		next_ns = relay->bells.answer_by_ns;
	if (relay->bells.wire && !relay->pinged && relay->seat.rank < 2 && relay->ping_ns < next_ns)
		next_ns = relay->ping_ns;
	now_ns = look(relay, now_ns);
	return now_ns < next_ns ? now_ns : next_ns;
}

/* ---- answers ---- */

void serve_lost(struct timerhub_relay *relay, uint64_t now_ns)
{
	if (relay->looking)
		seat_put_off(&relay->seat, now_ns);
	relay->looking = false;
}

static void pause_looks(struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t pause_ns = relay->look_pause_ns ? 2 * relay->look_pause_ns : PAUSE_FIRST_NS;

	relay->look_pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
	seat_put_off(&relay->seat, now_ns + relay->look_pause_ns);
}

/* The lock is held. */
static void count_look(struct timerhub_relay *relay, const struct reply *reply)
{
	struct timerhub_relay_stats *stats = &relay->stats;

	stats->looks++;
	if (reply_integer_at(reply, LOOK_MOVED) == 0 && reply_integer_at(reply, LOOK_AGAIN) == 0)
		stats->looks_empty++;
	stats->rank = relay->seat.rank;
	for (size_t i = LOOK_BUCKETS; i + 1 < reply_count(reply); i += 2) {
		uint64_t bucket = (uint64_t)reply_integer_at(reply, i);

		if (bucket < TIMERHUB_LATENESS_BUCKETS)
			stats->lateness[bucket] += (uint64_t)reply_integer_at(reply, i + 1);
	}
}

void serve_answered(struct timerhub_relay *relay, const struct reply *reply, uint64_t now_ns)
{
	struct seat_answer answer = {
		.now_us = (uint64_t)reply_integer_at(reply, LOOK_NOW),
		.wait_us = (uint64_t)reply_integer_at(reply, LOOK_WAIT),
		.rank = (uint64_t)reply_integer_at(reply, LOOK_RANK),
		.more = reply_integer_at(reply, LOOK_MORE) != 0,
	};

	relay->looking = false;
	if (reply_count(reply) < LOOK_BUCKETS || reply_integer_at(reply, 0) != 0) {
		pause_looks(relay, now_ns);
		return;
	}
	relay->look_pause_ns = 0;
	relay->anchor_ns = relay->look.sent_ns;
	relay->anchor_us = answer.now_us;
	seat_answered(&relay->seat, &answer);
	lock_take(&relay->lock);
	count_look(relay, reply);
	lock_give(&relay->lock);
}

/* ---- bells ---- */

static void confirm(struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t spread_ns = relay->seat.rank * SPREAD_NS;

	relay->confirmed++;
	if (relay->confirmed < CHANNELS)
		return;
	relay->bells.backoff_ns = 0;
	relay->bells.answer_by_ns = UINT64_MAX;
	/* What has rung while it could not hear. */
	if (!relay->looking)
		seat_put_off(&relay->seat,
		             now_ns + (spread_ns < SPREAD_MAX_NS ? spread_ns : SPREAD_MAX_NS));
	else
		relay->seat.bell_ns = now_ns;
}

/* False: nothing that a server says to a subscriber. */
static bool read_message(struct timerhub_relay *relay, const struct reply *reply, uint64_t now_ns)
{
	struct seat_bell bell;

	if (reply_is(reply, 0, "subscribe")) {
		confirm(relay, now_ns);
		return true;
	}
	if (reply_is(reply, 0, "pong")) {
		relay->pinged = false;
		relay->bells.answer_by_ns = UINT64_MAX;
		return true;
	}
	if (!reply_is(reply, 0, "message"))
		return false;
	if (seat_read_bell(&bell, reply_text(reply_at(reply, 2)))) {
		seat_rung(&relay->seat, &bell, now_ns);
		lock_take(&relay->lock);
		relay->stats.bells++;
		lock_give(&relay->lock);
	}
	return true;
}

void serve_read(struct timerhub_relay *relay, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(relay->bells.wire), found = 0;

	while (result == 0 && (found = wire_next(relay->bells.wire, &reply)) == 1) {
		if (reply_type(reply) == REPLY_ERROR)
			result = answer_of(reply_text(reply)).error;
		else if (!read_message(relay, reply, now_ns))
			result = -EPROTO;
		reply_free(reply);
	}
	if (found < 0)
		result = found;
	if (result < 0)
		link_lose(relay, &relay->bells, result, now_ns);
}
