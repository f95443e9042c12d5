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

static void subscribe(struct shard *shard)
{
	struct bytes *output = wire_output(shard->bells.wire);
	char part[KEYS_NAME_BYTES / 2], name[KEYS_NAME_BYTES];

	bytes_command(output, 1 + CHANNELS);
	bytes_text(output, "SUBSCRIBE");
	(void)snprintf(part, sizeof(part), "bell:%s", shard->name);
	keys_name(&shard->keys, name, part);
	bytes_text(output, name);
	keys_name(&shard->keys, name, "bell");
	bytes_text(output, name);
}

/* False: it does not listen yet, and is about to. A relay that cannot listen at all looks too. */
static bool listen(struct shard *shard, uint64_t now_ns)
{
	bool was_open = shard->bells.wire != NULL;

	if (!link_open(shard, &shard->bells, now_ns))
		return true;
	if (!was_open) {
		subscribe(shard);
		shard->bells.answer_by_ns = now_ns + ANSWER_NS;
		shard->ping_ns = now_ns + shard->relay->horizon_us * NS_PER_US;
	}
	return shard->confirmed == CHANNELS;
}

/* A connection that has died silently is found by what it does not answer. */
static void ping(struct shard *shard, uint64_t now_ns)
{
	struct bytes *output = wire_output(shard->bells.wire);

	shard->ping_ns = now_ns + shard->relay->horizon_us * NS_PER_US;
	bytes_command(output, 1);
	bytes_text(output, "PING");
	shard->pinged = true;
	shard->bells.answer_by_ns = now_ns + ANSWER_NS;
}

static uint64_t look(struct shard *shard, uint64_t now_ns)
{
	uint64_t due_ns = seat_due_ns(&shard->seat);

	if (shard->looking || !shard->command.wire || shard->later)
		return UINT64_MAX;
	if (due_ns > now_ns)
		return due_ns;
	shard->looking = true;
	seat_sent(&shard->seat, now_ns);
	shard_send(shard, &shard->look, now_ns);
	return UINT64_MAX;
}

uint64_t serve_pass(struct shard *shard, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (!shard->command.wire)
		return UINT64_MAX; /* it was lost a moment ago: there will be another pass */
	if (!listen(shard, now_ns))
		return shard->bells.answer_by_ns;
	if (!shard->bells.wire)
		next_ns = shard->bells.retry_ns;
	else if (!shard->pinged && shard->seat.rank < 2 && now_ns >= shard->ping_ns)
		ping(shard, now_ns);
	if (shard->bells.wire && shard->bells.answer_by_ns < next_ns)
		next_ns = shard->bells.answer_by_ns;
	if (shard->bells.wire && !shard->pinged && shard->seat.rank < 2 && shard->ping_ns < next_ns)
		next_ns = shard->ping_ns;
	now_ns = look(shard, now_ns);
	return now_ns < next_ns ? now_ns : next_ns;
}

/* ---- answers ---- */

void serve_lost(struct shard *shard, uint64_t now_ns)
{
	if (shard->looking)
		seat_put_off(&shard->seat, now_ns);
	shard->looking = false;
}

static void pause_looks(struct shard *shard, uint64_t now_ns)
{
	uint64_t pause_ns = shard->look_pause_ns ? 2 * shard->look_pause_ns : PAUSE_FIRST_NS;

	shard->look_pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
	seat_put_off(&shard->seat, now_ns + shard->look_pause_ns);
}

/* The lock is held. */
static void count_look(struct shard *shard, const struct reply *reply)
{
	struct timerhub_relay_stats *stats = &shard->relay->stats;

	stats->looks++;
	if (reply_integer_at(reply, LOOK_MOVED) == 0 && reply_integer_at(reply, LOOK_AGAIN) == 0)
		stats->looks_empty++;
	if (shard->index == 0)
		stats->rank = shard->seat.rank;
	for (size_t i = LOOK_BUCKETS; i + 1 < reply_count(reply); i += 2) {
		uint64_t bucket = (uint64_t)reply_integer_at(reply, i);

		if (bucket < TIMERHUB_LATENESS_BUCKETS)
			stats->lateness[bucket] += (uint64_t)reply_integer_at(reply, i + 1);
	}
}

/* Why a look was refused. */
static int refusal_of(const struct reply *reply)
{
	if (reply_type(reply) == REPLY_ERROR)
		return answer_of(reply_text(reply)).error;
	return reply_integer_at(reply, 0) < 0 ? (int)reply_integer_at(reply, 0) : -EPROTO;
}

void serve_answered(struct shard *shard, const struct reply *reply, uint64_t now_ns)
{
	struct seat_answer answer = {
		.now_us = (uint64_t)reply_integer_at(reply, LOOK_NOW),
		.wait_us = (uint64_t)reply_integer_at(reply, LOOK_WAIT),
		.rank = (uint64_t)reply_integer_at(reply, LOOK_RANK),
		.more = reply_integer_at(reply, LOOK_MORE) != 0,
	};

	shard->looking = false;
	if (reply_count(reply) < LOOK_BUCKETS || reply_integer_at(reply, 0) != 0) {
		shard_tell(shard, refusal_of(reply));
		pause_looks(shard, now_ns);
		return;
	}
	shard_tell(shard, 0);
	shard->look_pause_ns = 0;
	shard->looks++;
	shard->anchor_ns = shard->look.sent_ns;
	shard->anchor_us = answer.now_us;
	seat_answered(&shard->seat, &answer);
	lock_take(&shard->relay->lock);
	count_look(shard, reply);
	lock_give(&shard->relay->lock);
}

/* ---- bells ---- */

static void confirm(struct shard *shard, uint64_t now_ns)
{
	uint64_t spread_ns = shard->seat.rank * SPREAD_NS;

	shard->confirmed++;
	if (shard->confirmed < CHANNELS)
		return;
	shard->bells.backoff_ns = 0;
	shard->bells.answer_by_ns = LINK_NEVER;
	/* What has rung while it could not hear. */
	if (!shard->looking)
		seat_put_off(&shard->seat,
		             now_ns + (spread_ns < SPREAD_MAX_NS ? spread_ns : SPREAD_MAX_NS));
	else
		shard->seat.bell_ns = now_ns;
}

/* False: nothing that a server says to a subscriber. */
static bool read_message(struct shard *shard, const struct reply *reply, uint64_t now_ns)
{
	struct seat_bell bell;

	if (reply_is(reply, 0, "subscribe")) {
		confirm(shard, now_ns);
		return true;
	}
	if (reply_is(reply, 0, "pong")) {
		shard->pinged = false;
		shard->bells.answer_by_ns = LINK_NEVER;
		return true;
	}
	if (!reply_is(reply, 0, "message"))
		return false;
	if (seat_read_bell(&bell, reply_text(reply_at(reply, 2)))) {
		seat_rung(&shard->seat, &bell, now_ns);
		shard->bells_heard++;
		lock_take(&shard->relay->lock);
		shard->relay->stats.bells++;
		lock_give(&shard->relay->lock);
	}
	return true;
}

void serve_read(struct shard *shard, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(shard->bells.wire), found = 0;

	while (result == 0 && (found = wire_next(shard->bells.wire, &reply)) == 1) {
		if (reply_type(reply) == REPLY_ERROR)
			result = answer_of(reply_text(reply)).error;
		else if (!read_message(shard, reply, now_ns))
			result = -EPROTO;
		reply_free(reply);
	}
	if (found < 0)
		result = found;
	if (result < 0)
		link_lose(shard, &shard->bells, result, now_ns);
}
