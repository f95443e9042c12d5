/* SPDX-License-Identifier: MIT */
/*
 * Implements timerhub_relay_check(), which tells how safe the tasks of a queue are: whether its
 * servers keep them on disk, whether a relay moves them when they are due, and whether the keys of
 * the queue agree with each other.
 */
#include "relay/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancellation.h"
#include "relay/handshake.h"
#include "relay/url_file.h"

#define STEP_NS UINT64_C(2000000000)
#define ROUNDS 5
/*
 * How late the promised poll of the queue may be before the relays count as dead. A working relay
 * is late by 100 ms (the grace) at most.
 */
#define OVERDUE_NS UINT64_C(5000000000)

/* Returns the number that follows `name` in a reply to INFO, or 0 if the name is not in it. */
static uint64_t number_of(const char *text, const char *name)
{
	const char *found = strstr(text, name);

	return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static void ask(struct wire *wire, const char *a, const char *b, const char *c)
{
	bytes_command(wire_output(wire), c ? 3 : b ? 2 : 1);
	bytes_text(wire_output(wire), a);
	if (b)
		bytes_text(wire_output(wire), b);
	if (c)
		bytes_text(wire_output(wire), c);
}

/*
 * Asks for one setting of the server (CONFIG GET). The caller frees the reply, which is NULL if the
 * user has no right to ask.
 */
static int ask_config(struct wire *wire, const char *name, struct reply **ret_reply)
{
	int result;

	ask(wire, "CONFIG", "GET", name);
	result = handshake_call(wire, ret_reply, STEP_NS);
	if (result == -EACCES || result == -EOPNOTSUPP) {
		*ret_reply = NULL;
		result = 0;
	}
	return result;
}

static int ask_persistence(struct wire *wire, struct timerhub_relay_report *report)
{
	static const char *const names[] = { "appendonly", "appendfsync", "save",
		                             "maxmemory-policy", "min-replicas-to-write" };
	enum { AOF, FSYNC, SAVE, POLICY, REPLICAS, COUNT };
	struct reply *values[COUNT] = { NULL };
	int result = 0;

	for (unsigned i = 0; i < COUNT && result == 0; i++)
		result = ask_config(wire, names[i], &values[i]);
	if (result == 0 && values[AOF] && reply_count(values[AOF]) == 2) {
		report->keeps = TIMERHUB_RELAY_KEEPS_NOTHING;
		if (reply_len(reply_at(values[SAVE], 1)) > 0)
			report->keeps = TIMERHUB_RELAY_KEEPS_SNAPSHOT;
		if (reply_is(values[AOF], 1, "yes"))
			report->keeps = reply_is(values[FSYNC], 1, "always")
			                        ? TIMERHUB_RELAY_KEEPS_ALL
			                        : TIMERHUB_RELAY_KEEPS_SECONDS;
		/*
		 * Only the policies allkeys-* can evict tasks, because a queue's keys have no time
		 * to live.
		 */
		report->evicts =
			strncmp(reply_text(reply_at(values[POLICY], 1)), "allkeys", 7) == 0;
		report->replicas_min = (uint32_t)reply_integer_at(values[REPLICAS], 1);
	}
	for (unsigned i = 0; i < COUNT; i++)
		reply_free(values[i]);
	return result;
}

static int ask_replication(struct wire *wire, struct timerhub_relay_report *report)
{
	struct reply *reply;
	int result;

	ask(wire, "INFO", "replication", NULL);
	result = handshake_call(wire, &reply, STEP_NS);
	if (result < 0)
		return result;
	report->replicas = (uint32_t)number_of(reply_text(reply), "connected_slaves:");
	reply_free(reply);
	return 0;
}

/*
 * Returns how late the queue's next poll is, or 0 if it is not late. `look_by_us` is when a relay
 * must poll at the latest, or 0 if no relay has planned a poll.
 */
static uint64_t promise_past_ns(uint64_t now_us, uint64_t look_by_us)
{
	return look_by_us > 0 && now_us > look_by_us ? (now_us - look_by_us) * NS_PER_US : 0;
}

/* Stores the queue's counts in `report`, and in *ret_paused whether the queue is paused. */
static int ask_stat(struct wire *wire, const struct keys *keys,
                    struct timerhub_relay_report *report, bool *ret_paused)
{
	uint64_t now_us = 0, look_by_us = 0;
	struct reply *reply;
	int result;

	keys_call(keys, wire_output(wire), "stat", "due task ready dead past state seats seen", 0);
	result = handshake_call(wire, &reply, STEP_NS);
	if (result < 0)
		return result;
	for (size_t i = 1; i + 1 < reply_count(reply); i += 2) {
		uint64_t value = (uint64_t)reply_integer_at(reply, i + 1);

		if (reply_is(reply, i, "tasks"))
			report->tasks = value;
		else if (reply_is(reply, i, "waiting") || reply_is(reply, i, "ready"))
			report->placed += value;
		else if (reply_is(reply, i, "relays"))
			report->relays = value;
		else if (reply_is(reply, i, "overdue"))
			report->overdue_ns = value * NS_PER_US;
		else if (reply_is(reply, i, "paused"))
			*ret_paused = value > 0;
		else if (reply_is(reply, i, "now"))
			now_us = value;
		else if (reply_is(reply, i, "look_by"))
			look_by_us = value;
	}
	if (promise_past_ns(now_us, look_by_us) > OVERDUE_NS)
		report->relays = 0;
	reply_free(reply);
	return 0;
}

/*
 * Asks Redis how many processes listen to the queue's wake-up messages. Sets *ret_unheard to true
 * if the answer is 0. If the Redis user has no right to ask, sets it to false and returns 0.
 */
static int ask_bell(struct wire *wire, const struct keys *keys, bool *ret_unheard)
{
	char name[KEYS_NAME_BYTES];
	struct reply *reply;
	int result;

	*ret_unheard = false;
	keys_name(keys, name, "bell");
	ask(wire, "PUBSUB", "NUMSUB", name);
	result = handshake_call(wire, &reply, STEP_NS);
	if (result == -EACCES || result == -EOPNOTSUPP)
		return 0;
	if (result < 0)
		return result;
	*ret_unheard = reply_integer_at(reply, 1) == 0;
	reply_free(reply);
	return 0;
}

static int ask_queue(struct wire *wire, const struct keys *keys)
{
	char name[KEYS_NAME_BYTES];
	struct reply *reply;
	int result;

	keys_name(keys, name, "state");
	ask(wire, "EXISTS", name, NULL);
	result = handshake_call(wire, &reply, STEP_NS);
	if (result < 0)
		return result;
	result = reply_integer(reply) == 1 ? 0 : -ENOENT;
	reply_free(reply);
	return result;
}

static int ask_round_trip(struct wire *wire, uint64_t *ret_ns)
{
	*ret_ns = UINT64_MAX;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t begin_ns = clock_monotonic_ns(), passed_ns;
		struct reply *reply;
		int result;

		ask(wire, "PING", NULL, NULL);
		result = handshake_call(wire, &reply, STEP_NS);
		if (result < 0)
			return result;
		reply_free(reply);
		passed_ns = clock_monotonic_ns() - begin_ns;
		*ret_ns = passed_ns < *ret_ns ? passed_ns : *ret_ns;
	}
	return 0;
}

static const struct {
	uint64_t fault;
	const char *text;
} fault_texts[] = {
	{ TIMERHUB_RELAY_FAULT_UNSERVED,
	  "no relay serves the queue: no task becomes due; run timerhub-relay run" },
	{ TIMERHUB_RELAY_FAULT_OVERDUE,
	  "a task is overdue by more than 5 s: relays do not keep up, or are stopped" },
	{ TIMERHUB_RELAY_FAULT_UNHEARD,
	  "no relay hears bells: tasks are late; its user needs +subscribe and +ping" },
	{ TIMERHUB_RELAY_FAULT_EVICTS,
	  "maxmemory-policy is one of allkeys-*: tasks may vanish when memory is full" },
	{ TIMERHUB_RELAY_FAULT_LOST,
	  "records without an id that waits or an entry: entries were deleted by hand" },
	{ TIMERHUB_RELAY_FAULT_FOREIGN,
	  "ids or entries without a record: another program has written the keys" },
	{ TIMERHUB_RELAY_FAULT_AWAY, "a server does not answer: this is what the others say" },
};

const char *check_fault_text(uint64_t all, unsigned index)
{
	for (unsigned i = 0; i < sizeof(fault_texts) / sizeof(fault_texts[0]); i++)
		if ((all & fault_texts[i].fault) && index-- == 0)
			return fault_texts[i].text;
	return NULL;
}

static uint64_t find_faults(const struct timerhub_relay_report *report, bool unheard, bool paused)
{
	uint64_t found = 0;

	if (report->relays == 0)
		found |= TIMERHUB_RELAY_FAULT_UNSERVED;
	else if (unheard)
		found |= TIMERHUB_RELAY_FAULT_UNHEARD;
	if (report->overdue_ns > OVERDUE_NS && !paused)
		found |= TIMERHUB_RELAY_FAULT_OVERDUE;
	if (report->evicts)
		found |= TIMERHUB_RELAY_FAULT_EVICTS;
	if (report->tasks > report->placed)
		found |= TIMERHUB_RELAY_FAULT_LOST;
	if (report->tasks < report->placed)
		found |= TIMERHUB_RELAY_FAULT_FOREIGN;
	return found;
}

static int ask_all(struct wire *wire, const struct keys *keys, struct timerhub_relay_report *report,
                   bool *ret_paused)
{
	int result = ask_persistence(wire, report);

	if (result == 0)
		result = ask_replication(wire, report);
	if (result == 0)
		result = ask_queue(wire, keys);
	if (result == 0)
		result = ask_stat(wire, keys, report, ret_paused);
	if (result == 0)
		result = ask_round_trip(wire, &report->round_trip_ns);
	return result;
}

/*
 * Checks one server. If it cannot be connected to, the report has the fault AWAY, and the error is
 * returned.
 */
static int check_server(struct address *address, const struct keys *keys,
                        struct timerhub_relay_report *ret_report)
{
	struct timerhub_relay_report report = { .keeps = TIMERHUB_RELAY_KEEPS_UNKNOWN };
	struct wire *wire;
	bool unheard = false, paused = false;
	int result = handshake_open(&wire, address, NULL, NULL, STEP_NS);

	if (result < 0) {
		ret_report->faults = TIMERHUB_RELAY_FAULT_AWAY;
		return result;
	}
	result = ask_all(wire, keys, &report, &paused);
	if (result == 0)
		result = ask_bell(wire, keys, &unheard);
	wire_close(wire);
	report.faults = find_faults(&report, unheard, paused);
	if (result == 0)
		*ret_report = report;
	return result;
}

static uint32_t fewer(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint64_t fewer64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Merges the report of one server into that of the queue. `keeps` and the numbers of replicas get
 * the lowest value, because a queue is as durable as its weakest server.
 */
static void add_report(struct timerhub_relay_report *all, const struct timerhub_relay_report *one)
{
	all->keeps = fewer(all->keeps, one->keeps);
	all->replicas = fewer(all->replicas, one->replicas);
	all->replicas_min = fewer(all->replicas_min, one->replicas_min);
	all->evicts |= one->evicts;
	all->tasks += one->tasks;
	all->placed += one->placed;
	all->relays = fewer64(all->relays, one->relays);
	if (one->overdue_ns > all->overdue_ns)
		all->overdue_ns = one->overdue_ns;
	if (one->round_trip_ns > all->round_trip_ns)
		all->round_trip_ns = one->round_trip_ns;
	all->faults |= one->faults;
}

int timerhub_relay_check(const char *redis, const char *queue,
                         struct timerhub_relay_report *ret_report)
{
	CANCELLATION_HELD;
	struct timerhub_relay_report all = { .keeps = TIMERHUB_RELAY_KEEPS_ALL,
		                             .replicas = UINT32_MAX,
		                             .replicas_min = UINT32_MAX,
		                             .relays = UINT64_MAX };
	struct keys keys;
	const char *list;
	char *text = NULL;
	int result, away = 0;
	bool is_answered = false;

	if (!queue || !ret_report)
		return -EINVAL;
	result = keys_init(&keys, queue);
	if (result == 0)
		result = url_file_open(redis, &list, &text);
	if (result < 0)
		return result;
	do {
		struct timerhub_relay_report one = { .keeps = TIMERHUB_RELAY_KEEPS_UNKNOWN };
		struct address address;

		result = address_read(&address, &list);
		address.slot = keys.slot;
		if (result == 0)
			result = check_server(&address, &keys, &one);
		if (result == 0) {
			add_report(&all, &one);
			is_answered = true;
		} else if (one.faults == TIMERHUB_RELAY_FAULT_AWAY) {
			all.faults |= one.faults;
			away = result;
			result = 0;
		}
	} while (result == 0 && list);
	free(text);
	if (result == 0 && !is_answered)
		result = away;
	all.fault = check_fault_text(all.faults, 0);
	if (result == 0)
		*ret_report = all;
	return result;
}
