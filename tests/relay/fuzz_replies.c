/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the code that reads a server's replies, by libFuzzer. The fuzzer's bytes are the replies
 * to requests of any kind. Each request is sent alone, or together with other requests in one call.
 * Each request must get a result or must be sent again. Prefetched deliveries must be complete. No
 * number in a reply may make a relay hang. The first bytes of the input choose the requests, and
 * the other bytes come over a real connection.
 */
#include <errno.h>
#include <hiredis/read.h>
#include <stdlib.h>
#include <string.h>

#include <relay/cluster_map.h>
#include <relay/error_reply.h>
#include <relay/shard_thread.h>

#include "harness.h"
#include "wire_of_bytes.h"

#define HEADER_BYTES 2
#define DIGITS_MAX 6
#define NOW_NS (UINT64_C(1) << 40)

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static struct shared shared;
static struct shard shard;

#ifndef REDIS_READER_MAX_ARRAY_ELEMENTS
/*
 * Returns whether an array in the bytes claims too many elements. hiredis 0.14 allocates a pointer
 * for each claimed element. Later versions know a limit, which wire_open() sets.
 */
static bool claims_too_much(const unsigned char *bytes, size_t count)
{
	size_t digits = DIGITS_MAX;

	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '*')
			digits = 0;
		else if (bytes[i] == '\r')
			digits = DIGITS_MAX;
		else if (digits < DIGITS_MAX && ++digits == DIGITS_MAX)
			return true;
	}
	return false;
}
#endif

/* Take, read and return all prefetched deliveries. */
static void empty_hand(void)
{
	struct delivery *one;

	while ((one = deliveries_take(&shared.deliveries))) {
		expect_cmp(strnlen(one->id, sizeof(one->id)), <, sizeof(one->id));
		expect_cmp(strnlen(one->entry, sizeof(one->entry)), <, sizeof(one->entry));
		expect_eq(one->data[one->data_len], '\0');
		expect(deliveries_drop(&shared.deliveries, one->entry, one->id));
	}
	expect_eq(shared.deliveries.prefetched, 0);
}

static void answer_request(const struct reply *reply, enum request_kind kind, unsigned place,
                           bool in_doubt)
{
	struct timerhub_relay_stats stats = { .waiting = 0 };
	struct request request = {
		.kind = kind,
		.made_id = place % 2 == 1,
		.in_doubt = in_doubt,
		.stats = &stats,
		.sent_ns = NOW_NS,
		.result = 2,
	};

	if (!request_answer(&shard.client, &request, reply, kind == REQUEST_PUT ? place : 0,
	                    NOW_NS))
		expect_le(kind, REQUEST_TOUCH); /* sent again: Redis's clock was set */
	else if (kind == REQUEST_READ || kind == REQUEST_RECOVER)
		expect(request.result == 0 || request.result == 1);
	else
		expect(request.result <= 0 && request.result > -4096);
	/* A request may succeed only if its reply begins with 0. */
	if (request.result == 0 && kind < REQUEST_TOUCH && kind != REQUEST_PUT && !in_doubt)
		expect_eq(reply_integer_at(reply, 0), 0);
	if (kind == REQUEST_READ || kind == REQUEST_RECOVER)
		empty_hand();
}

/* From any reply, cluster_map_list() must make a list that address_read_node() can read. */
static void read_map(const struct reply *reply, uint16_t slot)
{
	const struct address asked = { .host = "asked" };
	struct address server = { .slot = slot }, node;
	char nodes[ADDRESS_NODES_BYTES];
	const char *text = nodes;
	int result = cluster_map_find(reply, &asked, &server);

	expect(result == 0 || result == -EROFS || result == -EPROTO);
	if (result == 0)
		expect(server.host[0] && server.port[0]);
	cluster_map_list(reply, &asked, nodes);
	while (nodes[0] && text)
		expect_eq(address_read_node(&node, &text, &asked), 0);
}

static void use(const struct reply *reply, const unsigned char *header)
{
	enum request_kind kind = (enum request_kind)(header[0] % (REQUEST_WAIT + 1));
	struct look_timing_bell bell;

	if (reply_type(reply) == REPLY_ERROR) {
		expect_cmp(error_reply_of(reply_text(reply)).error, <, 0);
		return;
	}
	if (kind == REQUEST_LOOK) {
		look_timing_sent(&shard.scheduler.timing, NOW_NS);
		scheduler_answered(&shard.scheduler, reply, NOW_NS);
		expect(!shard.scheduler.looking &&
		       look_timing_due_ns(&shard.scheduler.timing) != LOOK_TIMING_NEVER);
	}
	read_map(reply, (uint16_t)(header[1] * 64));
	if (look_timing_read_bell(&bell, reply_text(reply_at(reply, 2))))
		look_timing_rung(&shard.scheduler.timing, &bell, NOW_NS);
	answer_request(reply, kind, header[1] % 4, header[1] >= 128);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
	const struct address address = { .host = "" };
	struct reply *reply;
	struct wire *wire;
	int found = 0;

	if (count < HEADER_BYTES)
		return 0;
#ifndef REDIS_READER_MAX_ARRAY_ELEMENTS
	if (claims_too_much(bytes, count))
		return 0;
#endif
	memset(&shared, 0, sizeof(shared));
	memset(&shard, 0, sizeof(shard));
	lock_init(&shared.lock);
	shared.grace_us = 100000;
	shard_init(&shard, &shared, &address, 1);
	wire = wire_of_bytes(bytes + HEADER_BYTES, count - HEADER_BYTES);
	if (!wire)
		return 0;
	if (wire_fill(wire) != -EPROTO)
		while ((found = wire_next(wire, &reply)) == 1) {
			use(reply, bytes);
			reply_free(reply);
		}
	expect(found == 0 || found == -EPROTO || found == -ENOMEM);
	wire_close(wire);
	deliveries_fini(&shared.deliveries);
	lock_fini(&shared.lock);
	return 0;
}
