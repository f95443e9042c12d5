/* SPDX-License-Identifier: MIT */
/*
 * The connection on which a shard reads tasks for callers that wait for one (takers_connection.h).
 * Tested in tests/relay by test_calls.c and wire_test.py.
 */
#include "relay/takers_connection.h"

#include <errno.h>

#include "relay/error_reply.h"
#include "relay/handshake.h"
#include "relay/sleeper.h"

#define BLOCK_MAX_MS UINT64_C(30000)
#define SLACK_NS (UINT64_C(1000) * NS_PER_MS) /* how much longer than a step a reply may take */

void takers_init(struct takers_connection *takers, struct client *client, uint64_t seed)
{
	*takers = (struct takers_connection){ .client = client };
	link_init(&takers->link, seed);
}

/*
 * Returns how many tasks to read now, or 0. Stores in *ret_ms how long Redis may block for them.
 * Called with the relay's lock held.
 */
static uint32_t wanted(const struct shared *shared, uint64_t now_ns, uint64_t *ret_ms)
{
	uint32_t count = shared->waiting;

	*ret_ms = BLOCK_MAX_MS;
	if (shared->deliveries.prefetched > 0 || shared->stopped)
		return 0;
	if (shared->armed)
		return count > 0 ? count : 1;
	if (shared->wait_until_ns < now_ns + BLOCK_MAX_MS * NS_PER_MS)
		*ret_ms = shared->wait_until_ns > now_ns + NS_PER_MS
		                  ? (shared->wait_until_ns - now_ns) / NS_PER_MS
		                  : 1;
	return count;
}

static void encode_take(struct takers_connection *takers, uint32_t count, uint64_t block_ms)
{
	struct bytes *output = wire_output(takers->link.wire);
	char name[KEYS_NAME_BYTES];

	keys_name(&takers->client->keys, name, "ready");
	bytes_command(output, 11);
	bytes_text(output, "XREADGROUP");
	bytes_text(output, "GROUP");
	bytes_text(output, "timerhub");
	bytes_text(output, takers->client->shared->consumer);
	bytes_text(output, "COUNT");
	bytes_number(output, count);
	bytes_text(output, "BLOCK");
	bytes_number(output, block_ms);
	bytes_text(output, "STREAMS");
	bytes_text(output, name);
	bytes_text(output, ">");
}

static bool open_link(struct takers_connection *takers, const struct address *server,
                      uint64_t now_ns)
{
	struct address master = *server;
	struct wire *wire;
	int result;

	if (!link_is_due(&takers->link, now_ns))
		return takers->link.wire != NULL;
	takers->link.round_ns = takers->client->round_ns;
	result = handshake_open(&wire, &master, NULL, NULL,
	                        link_step_ns(&takers->link, takers->client->shared->timeout_ns));
	if (result < 0) {
		link_back_off(&takers->link, result, sleeper_now_ns());
		return false;
	}
	link_set(&takers->link, wire);
	takers->server = *server;
	return true;
}

static uint64_t slack_ns(const struct takers_connection *takers)
{
	return SLACK_NS + link_step_ns(&takers->link, takers->client->shared->timeout_ns);
}

static void set_reading(struct takers_connection *takers, bool reading)
{
	takers->reading = reading;
	lock_take(&takers->client->shared->lock);
	takers->client->reads.blocked = reading;
	lock_give(&takers->client->shared->lock);
}

uint64_t takers_pass(struct takers_connection *takers, const struct address *server,
                     uint64_t now_ns)
{
	struct shared *shared = takers->client->shared;
	uint64_t block_ms;
	uint32_t count;

	if (takers->reading)
		return takers->link.answer_by_ns;
	lock_take(&shared->lock);
	/* A shard has only one read in flight at a time (README.md). */
	count = takers->client->reads.asked_ns > 0 ? 0 : wanted(shared, now_ns, &block_ms);
	lock_give(&shared->lock);
	if (count == 0)
		return UINT64_MAX;
	if (!open_link(takers, server, now_ns))
		return takers->link.retry_ns;
	encode_take(takers, count, block_ms);
	set_reading(takers, true);
	takers->sent_ns = sleeper_now_ns();
	takers->link.answer_by_ns = takers->sent_ns + block_ms * NS_PER_MS + slack_ns(takers);
	return takers->link.answer_by_ns;
}

static int answer_take(struct takers_connection *takers, const struct reply *reply, uint64_t now_ns)
{
	struct client *client = takers->client;
	struct shared *shared = client->shared;
	struct arrival arrival;
	int result;

	if (reply_type(reply) == REPLY_ERROR)
		return error_reply_of(reply_text(reply)).error;
	set_reading(takers, false);
	takers->link.backoff_ns = 0;
	takers->link.answer_by_ns = LINK_NEVER;
	lock_take(&shared->lock);
	arrival = client_arrival(client, takers->sent_ns, now_ns);
	result = deliveries_read(&shared->deliveries, reply, client->shard, &arrival);
	shared_show_prefetched(shared);
	lock_give(&shared->lock);
	return result < 0 ? result : 0;
}

int takers_read(struct takers_connection *takers, uint64_t now_ns)
{
	struct reply *reply;
	int result = wire_fill(takers->link.wire), found = 0;

	/* Bytes have come, so give the network more time for the rest of a long reply. */
	if (takers->reading && takers->link.answer_by_ns < now_ns + slack_ns(takers))
		takers->link.answer_by_ns = now_ns + slack_ns(takers);
	while (result == 0 && (found = wire_next(takers->link.wire, &reply)) == 1) {
		result = answer_take(takers, reply, now_ns);
		reply_free(reply);
	}
	return found < 0 ? found : result;
}

bool takers_lose(struct takers_connection *takers, int why, uint64_t now_ns)
{
	bool was_reading = takers->reading;

	link_lose(&takers->link, why, now_ns);
	set_reading(takers, false);
	return was_reading;
}
