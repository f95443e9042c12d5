/* SPDX-License-Identifier: MIT */
/* The command top: readings of queues, each with one call of timerhub_stat on each server. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_relay.h>
#include <unistd.h>

#include <relay/handshake.h>

#include "tool.h"

#define INTERVAL_DEFAULT_MS 1000u
#define US_PER_S 1e6

enum field { NOW, WAITING, READY, TAKEN, LAG, PARKED, PROMOTED, LEASES_OVER, FIELDS };

static const char *const field_names[FIELDS] = { "now", "waiting", "ready",    "taken",
	                                         "lag", "parked",  "promoted", "leases_over" };

/* added up over the queue's servers */
struct reading {
	uint64_t fields[FIELDS];
	uint64_t late[TIMERHUB_LATENESS_BUCKETS];
};

struct watched {
	struct call call;
	const char *name;
	struct reading now, before;
	/* of the two readings; they also have what the relays sent with their last polls */
	struct reply *replies[KEYS_SHARDS_MAX], *earlier[KEYS_SHARDS_MAX];
};

static void add_reply(struct reading *reading, const struct reply *reply)
{
	const char *name, *text;

	for (size_t at = 0; stat_next(reply, &at, &name, &text);) {
		uint64_t value = strtoull(text, NULL, 10);

		stat_add_late(name, text, reading->late, TIMERHUB_LATENESS_BUCKETS);
		for (unsigned i = 0; i < FIELDS; i++) {
			uint64_t *field = &reading->fields[i];

			if (strcmp(name, field_names[i]) != 0)
				continue;
			if (i == NOW || i == LAG)
				*field = value > *field ? value : *field;
			else
				*field += value;
		}
	}
}

static enum status read_server(struct watched *watched, uint32_t shard)
{
	struct call *call = &watched->call;
	int result = connect_call(call, shard);

	reply_free(watched->earlier[shard]);
	watched->earlier[shard] = watched->replies[shard];
	watched->replies[shard] = NULL;
	if (result == 0) {
		begin(call, "stat", STAT_KEYS, (const char *const[]){ NULL });
		result = handshake_call(call->wire, &watched->replies[shard], STEP_NS);
	}
	close_call(call);
	return result < 0 ? complain(call, watched->name, result) : GOOD;
}

/*
 * Both readings are of the servers that answer now. One that was away, and comes back, counts from
 * now on.
 */
static enum status read_queue(struct watched *watched)
{
	bool is_first = watched->now.fields[NOW] == 0;
	enum status status = GOOD;

	watched->now = watched->before = (struct reading){ .fields = { 0 } };
	for (uint32_t i = 0; i < watched->call.shards; i++) {
		status = worse(status, read_server(watched, i));
		add_reply(&watched->now, watched->replies[i]);
		if (watched->replies[i] && !is_first)
			add_reply(&watched->before,
			          watched->earlier[i] ? watched->earlier[i] : watched->replies[i]);
	}
	return status;
}

/* ---- what follows from two readings ---- */

/* The counter of a queue that was deleted began again at 0. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static double per_second(const struct watched *watched, enum field field)
{
	uint64_t us = since(watched->now.fields[NOW], watched->before.fields[NOW]);
	uint64_t count = since(watched->now.fields[field], watched->before.fields[field]);

	return watched->before.fields[NOW] > 0 && us > 0 ? (double)count * US_PER_S / (double)us
	                                                 : 0;
}

/* The lateness that `thousandths` / 1000 of the tasks since the previous reading did not exceed. */
static uint64_t late_ns(const struct watched *watched, uint64_t thousandths)
{
	uint64_t total = 0, passed = 0;

	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		total += since(watched->now.late[i], watched->before.late[i]);
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS && total > 0; i++) {
		passed += since(watched->now.late[i], watched->before.late[i]);
		if (passed * 1000 >= total * thousandths)
			return i < 63 ? (UINT64_C(2) << i) - 1 : UINT64_MAX;
	}
	return 0;
}

/* ---- the relays ---- */

static void print_relay(const struct watched *watched, uint32_t shard, const char *name,
                        const uint64_t *numbers, bool first)
{
	uint64_t age_us = since(watched->now.fields[NOW], numbers[RELAY_SENT_US]);

	if (options.json) {
		(void)printf("%s{\"name\": ", first ? "" : ", ");
		print_string(name);
		(void)printf(", \"server\": %" PRIu32 ", \"rank\": %" PRIu64
		             ", \"age_us\": %" PRIu64 ", \"looks\": %" PRIu64
		             ", \"bells\": %" PRIu64 "}",
		             shard, numbers[RELAY_RANK], age_us, numbers[RELAY_LOOKS],
		             numbers[RELAY_BELLS]);
		return;
	}
	(void)printf("  server %" PRIu32 " rank %" PRIu64 " ", shard, numbers[RELAY_RANK]);
	print_string(name);
	(void)printf(" looks %" PRIu64 " bells %" PRIu64 " said %.1f s ago\n", numbers[RELAY_LOOKS],
	             numbers[RELAY_BELLS], (double)age_us / US_PER_S);
}

static void print_relays(const struct watched *watched)
{
	uint64_t numbers[RELAY_NUMBERS];
	const char *name, *value, *relay;
	bool first = true;

	for (uint32_t shard = 0; shard < watched->call.shards; shard++)
		for (size_t at = 0; stat_next(watched->replies[shard], &at, &name, &value);) {
			relay = stat_relay(name, value, numbers);
			if (!relay)
				continue;
			print_relay(watched, shard, relay, numbers, first);
			first = false;
		}
}

/* ---- a reading ---- */

static void print_json(const struct watched *watched)
{
	(void)printf("{\"queue\": \"%s\"", watched->name);
	for (unsigned i = 0; i < FIELDS; i++)
		(void)printf(", \"%s\": %" PRIu64, field_names[i], watched->now.fields[i]);
	(void)printf(", \"promoted_per_s\": %.3f, \"late_p50_ns\": %" PRIu64
	             ", \"late_p99_ns\": %" PRIu64 ", \"late_max_ns\": %" PRIu64 ", \"relays\": [",
	             per_second(watched, PROMOTED), late_ns(watched, 500), late_ns(watched, 990),
	             late_ns(watched, 1000));
	print_relays(watched);
	(void)printf("]}\n");
}

static void print_plain(const struct watched *watched)
{
	const uint64_t *fields = watched->now.fields;

	(void)printf("%s\n  waiting %" PRIu64 "  ready %" PRIu64 "  taken %" PRIu64
	             "  lag %.1f ms  parked %" PRIu64 "  leases over %" PRIu64 "\n",
	             watched->name, fields[WAITING], fields[READY], fields[TAKEN],
	             (double)fields[LAG] / 1000, fields[PARKED], fields[LEASES_OVER]);
	(void)printf("  promoted %" PRIu64 ", %.1f/s  late at most: p50 %.3f ms  p99 %.3f ms  all "
	             "%.3f ms\n",
	             fields[PROMOTED], per_second(watched, PROMOTED),
	             (double)late_ns(watched, 500) / NS_PER_MS,
	             (double)late_ns(watched, 990) / NS_PER_MS,
	             (double)late_ns(watched, 1000) / NS_PER_MS);
	print_relays(watched);
}

static enum status read_all(struct watched *all, int count)
{
	enum status status = GOOD;

	if (!options.json && isatty(STDOUT_FILENO))
		(void)fputs("\033[H\033[J", stdout); /* clear the screen, begin at its top */
	for (int i = 0; i < count; i++) {
		enum status one = read_queue(&all[i]);

		status = worse(status, one);
		if (one != GOOD && all[i].now.fields[NOW] == 0)
			continue; /* no server has answered */
		if (options.json)
			print_json(&all[i]);
		else
			print_plain(&all[i]);
	}
	(void)fflush(stdout);
	return status;
}

enum status top_run(char **queues, int count)
{
	uint64_t ms = options.interval_ms > 0 ? options.interval_ms : INTERVAL_DEFAULT_MS;
	struct timespec interval = timespec_of(ms * NS_PER_MS);
	struct watched *all = calloc((size_t)count, sizeof(*all));
	enum status status = GOOD;
	bool opened;

	if (!all)
		return out_of_memory();
	for (int i = 0; i < count && status == GOOD; i++) {
		all[i].name = queues[i];
		status = open_call(&all[i].call, queues[i]);
	}
	opened = status == GOOD;
	for (uint64_t i = 1; opened; i++) {
		status = read_all(all, count);
		if (i == options.count || ferror(stdout))
			break;
		(void)nanosleep(&interval, NULL);
	}
	for (int i = 0; i < count; i++)
		for (unsigned k = 0; k < KEYS_SHARDS_MAX; k++) {
			reply_free(all[i].replies[k]);
			reply_free(all[i].earlier[k]);
		}
	free(all);
	return status;
}
