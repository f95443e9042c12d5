/* SPDX-License-Identifier: MIT */
/*
 * Lets a relay call timerhub_look, which moves due tasks into the stream, at the right times
 * (scheduler.h). It is tested in virtual time by test_look_timing.c, and on a server by
 * test_calls.c and lives_test.py.
 *
 * open_bells() must not send ASKING, because wire_next() then skips every second reply, and
 * SUBSCRIBE has a reply for each channel.
 *
 * refuse_bells(): Without wake-up messages tasks are late. So scheduler_answered() tells the daemon
 * about the refusal (shared_tell()) again after each poll, although the poll itself has succeeded.
 */
#include "relay/scheduler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "relay/error_reply.h"
#include "relay/handshake.h"

#define CHANNELS 2u
#define PAUSE_FIRST_NS (100 * NS_PER_MS)
#define PAUSE_MAX_NS (UINT64_C(5000) * NS_PER_MS)
/*
 * After a reconnect a relay waits for this times its rank before it polls, so that not all relays
 * poll at once.
 */
#define SPREAD_NS NS_PER_MS
#define SPREAD_MAX_NS (1000 * NS_PER_MS)
/* Indexes of the fields in the reply to timerhub_look. */
enum {
	LOOK_MOVED = 1,
	LOOK_WAIT,
	LOOK_RANK,
	LOOK_NOW,
	LOOK_MORE,
	LOOK_AGAIN = 8,
	LOOK_BUCKETS = 10
};

static void answered(void *scheduler, const struct reply *reply, uint64_t now_ns)
{
	scheduler_answered(scheduler, reply, now_ns);
}

void scheduler_init(struct scheduler *scheduler, struct pipeline *pipeline, struct client *client,
                    uint64_t seed)
{
	*scheduler = (struct scheduler){
		.pipeline = pipeline,
		.client = client,
		.look = { .kind = REQUEST_LOOK,
		          .is_own = true,
		          .answered = answered,
		          .arg = scheduler },
	};
	link_init(&scheduler->bells, seed);
	look_timing_init(&scheduler->timing, client->shared->grace_us);
}

static void subscribe(struct scheduler *scheduler)
{
	struct bytes *output = wire_output(scheduler->bells.wire);
	char part[KEYS_NAME_BYTES / 2], name[KEYS_NAME_BYTES];

	bytes_command(output, 1 + CHANNELS);
	bytes_text(output, "SUBSCRIBE");
	(void)snprintf(part, sizeof(part), "bell:%s", scheduler->client->name);
	keys_name(&scheduler->client->keys, name, part);
	bytes_text(output, name);
	keys_name(&scheduler->client->keys, name, "bell");
	bytes_text(output, name);
}

static uint64_t step_ns(const struct scheduler *scheduler)
{
	return link_step_ns(&scheduler->bells, scheduler->client->shared->timeout_ns);
}

static void await_bells(struct scheduler *scheduler)
{
	scheduler->asked_ns = sleeper_now_ns(); /* a handshake may have taken long */
	scheduler->bells.answer_by_ns = scheduler->asked_ns + step_ns(scheduler);
}

static bool open_bells(struct scheduler *scheduler, uint64_t now_ns)
{
	struct address server = scheduler->pipeline->server;
	struct wire *wire;
	int result;

	/* Cluster nodes want ASKING only before commands that have keys, and SUBSCRIBE has none. */
	server.asking = false;
	if (!link_is_due(&scheduler->bells, now_ns))
		return scheduler->bells.wire != NULL;
	if (scheduler->bells.round_ns < scheduler->client->round_ns)
		scheduler->bells.round_ns = scheduler->client->round_ns;
	result = handshake_open(&wire, &server, NULL, NULL, step_ns(scheduler));
	if (result < 0) {
		link_back_off(&scheduler->bells, result, sleeper_now_ns());
		return false;
	}
	link_set(&scheduler->bells, wire);
	subscribe(scheduler);
	await_bells(scheduler);
	/* Send a PING at once, because its reply tells whether the Redis user may send PINGs. */
	scheduler->ping_ns = now_ns;
	return true;
}

/*
 * Returns false while the server's answer to SUBSCRIBE is awaited. The relay must not poll then
 * (README.md, invariant 2).
 */
static bool bells_are_heard(struct scheduler *scheduler, uint64_t now_ns)
{
	return !open_bells(scheduler, now_ns) || scheduler->confirmed == CHANNELS;
}

/*
 * Sends a PING on the connection for wake-up messages. If no reply comes, the connection is closed.
 */
static void ping(struct scheduler *scheduler, uint64_t now_ns)
{
	struct bytes *output = wire_output(scheduler->bells.wire);

	scheduler->ping_ns = now_ns + scheduler->client->shared->horizon_us * NS_PER_US;
	bytes_command(output, 1);
	bytes_text(output, "PING");
	scheduler->pinged = true;
	await_bells(scheduler);
}

static uint64_t look(struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t due_ns = look_timing_due_ns(&scheduler->timing);

	if (scheduler->looking || !pipeline_is_open(scheduler->pipeline))
		return UINT64_MAX;
	if (due_ns > now_ns)
		return due_ns;
	scheduler->looking = true;
	look_timing_sent(&scheduler->timing, now_ns);
	pipeline_send_own(scheduler->pipeline, &scheduler->look, now_ns);
	return UINT64_MAX;
}

uint64_t scheduler_pass(struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX, look_ns;

	if (!bells_are_heard(scheduler, now_ns))
		return scheduler->bells.answer_by_ns;
	if (!scheduler->bells.wire)
		next_ns = scheduler->bells.retry_ns;
	/*
	 * Only relays of rank 0 and 1 send a PING, because a put normally sends its wake-up message
	 * only to these two.
	 */
	else if (!scheduler->pinged && scheduler->timing.rank < 2 && now_ns >= scheduler->ping_ns)
		ping(scheduler, now_ns);
	if (scheduler->bells.wire && scheduler->bells.answer_by_ns < next_ns)
		next_ns = scheduler->bells.answer_by_ns;
	if (scheduler->bells.wire && !scheduler->pinged && scheduler->timing.rank < 2 &&
	    scheduler->ping_ns < next_ns)
		next_ns = scheduler->ping_ns;
	look_ns = look(scheduler, now_ns);
	return look_ns < next_ns ? look_ns : next_ns;
}

/* ---- answers ---- */

void scheduler_lose_bells(struct scheduler *scheduler, int why, uint64_t now_ns)
{
	link_lose(&scheduler->bells, why, now_ns);
	scheduler->confirmed = 0;
	scheduler->pinged = false;
}

void scheduler_lost(struct scheduler *scheduler, int why, uint64_t now_ns)
{
	if (scheduler->looking)
		look_timing_put_off(&scheduler->timing, now_ns);
	scheduler->looking = false;
	/*
	 * The server may be a replica by now. A replica still passes on wake-up messages, but a put
	 * on the new master would not see this subscriber.
	 */
	if (scheduler->bells.wire)
		scheduler_lose_bells(scheduler, why, now_ns);
}

static void pause_looks(struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t pause_ns =
		scheduler->look_pause_ns ? 2 * scheduler->look_pause_ns : PAUSE_FIRST_NS;

	scheduler->look_pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
	look_timing_put_off(&scheduler->timing, now_ns + scheduler->look_pause_ns);
}

/*
 * Updates the relay's statistics with the counts in a poll's reply. Called with the relay's lock
 * held.
 */
static void count_look(struct scheduler *scheduler, const struct reply *reply)
{
	struct timerhub_relay_stats *stats = &scheduler->client->shared->stats;

	stats->looks++;
	if (reply_integer_at(reply, LOOK_MOVED) == 0 && reply_integer_at(reply, LOOK_AGAIN) == 0)
		stats->looks_empty++;
	if (scheduler->client->shard == 0)
		stats->rank = scheduler->timing.rank;
	for (size_t i = LOOK_BUCKETS; i + 1 < reply_count(reply); i += 2) {
		uint64_t bucket = (uint64_t)reply_integer_at(reply, i);

		if (bucket < TIMERHUB_LATENESS_BUCKETS)
			stats->lateness[bucket] += (uint64_t)reply_integer_at(reply, i + 1);
	}
}

/*
 * Converts the reply to a failed poll to a negative errno. If the reply gives no reason for the
 * failure, that is -EPROTO.
 */
static int refusal_of(const struct reply *reply)
{
	if (reply_type(reply) == REPLY_ERROR)
		return error_reply_of(reply_text(reply)).error;
	return reply_integer_at(reply, 0) < 0 ? (int)reply_integer_at(reply, 0) : -EPROTO;
}

void scheduler_answered(struct scheduler *scheduler, const struct reply *reply, uint64_t now_ns)
{
	struct look_timing_answer answer = {
		.now_us = (uint64_t)reply_integer_at(reply, LOOK_NOW),
		.wait_us = (uint64_t)reply_integer_at(reply, LOOK_WAIT),
		.rank = (uint64_t)reply_integer_at(reply, LOOK_RANK),
		.more = reply_integer_at(reply, LOOK_MORE) != 0,
	};

	scheduler->looking = false;
	if (reply_count(reply) < LOOK_BUCKETS || reply_integer_at(reply, 0) != 0) {
		shared_tell(scheduler->client->shared, scheduler->client->shard, refusal_of(reply));
		pause_looks(scheduler, now_ns);
		return;
	}
	shared_tell(scheduler->client->shared, scheduler->client->shard, scheduler->bells_refused);
	scheduler->look_pause_ns = 0;
	scheduler->client->looks++;
	client_anchor(scheduler->client, answer.now_us, scheduler->look.sent_ns, now_ns);
	look_timing_answered(&scheduler->timing, &answer);
	lock_take(&scheduler->client->shared->lock);
	count_look(scheduler, reply);
	lock_give(&scheduler->client->shared->lock);
}

/* ---- bells ---- */

static void confirm(struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t spread_ns = scheduler->timing.rank * SPREAD_NS;

	scheduler->confirmed++;
	if (!scheduler->ping_refused)
		scheduler->bells_refused = 0;
	if (scheduler->confirmed < CHANNELS)
		return;
	scheduler->bells.backoff_ns = 0;
	scheduler->bells.round_ns = now_ns - scheduler->asked_ns;
	scheduler->bells.answer_by_ns = LINK_NEVER;
	/*
	 * Poll soon, because wake-up messages may have been missed before the relay was subscribed.
	 */
	if (!scheduler->looking)
		look_timing_put_off(
			&scheduler->timing,
			now_ns + (spread_ns < SPREAD_MAX_NS ? spread_ns : SPREAD_MAX_NS));
	else
		scheduler->timing.bell_ns = now_ns;
}

/*
 * Handles one reply on the connection for wake-up messages. Returns false if it is neither such a
 * message nor a reply to SUBSCRIBE or PING.
 */
static bool read_message(struct scheduler *scheduler, const struct reply *reply, uint64_t now_ns)
{
	struct look_timing_bell bell;

	if (reply_is(reply, 0, "subscribe")) {
		confirm(scheduler, now_ns);
		return true;
	}
	if (reply_is(reply, 0, "pong")) {
		scheduler->pinged = scheduler->ping_refused = false;
		scheduler->bells_refused = 0;
		scheduler->bells.answer_by_ns = LINK_NEVER;
		return true;
	}
	if (!reply_is(reply, 0, "message"))
		return false;
	if (look_timing_read_bell(&bell, reply_text(reply_at(reply, 2)))) {
		look_timing_rung(&scheduler->timing, &bell, now_ns);
		scheduler->client->bells++;
		lock_take(&scheduler->client->shared->lock);
		scheduler->client->shared->stats.bells++;
		lock_give(&scheduler->client->shared->lock);
	}
	return true;
}

/*
 * Called when the server refuses SUBSCRIBE or PING. Returns the error, and reports it by
 * shared_tell().
 */
static int refuse_bells(struct scheduler *scheduler, const char *text)
{
	scheduler->bells_refused = error_reply_of(text).error;
	scheduler->ping_refused = scheduler->pinged;
	shared_tell(scheduler->client->shared, scheduler->client->shard, scheduler->bells_refused);
	return scheduler->bells_refused;
}

int scheduler_read(struct scheduler *scheduler, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(scheduler->bells.wire), found = 0;

	while (result == 0 && (found = wire_next(scheduler->bells.wire, &reply)) == 1) {
		if (reply_type(reply) == REPLY_ERROR)
			result = refuse_bells(scheduler, reply_text(reply));
		else if (!read_message(scheduler, reply, now_ns))
			result = -EPROTO;
		reply_free(reply);
	}
	return found < 0 ? found : result;
}
