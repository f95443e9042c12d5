/* SPDX-License-Identifier: MIT */
/* The commands of timerhub-relay that call one function of timerhub-relay(5) on one server. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <timerhub_relay.h>

#include <relay/check.h>
#include <relay/handshake.h>
#include <when.h>

#include "tool.h"

#define COUNT_MAX 1000u

/*
 * Convert WHEN to the form of the Redis functions, rounded up so that no task is early. *ret_flags:
 * "a" if the time counts from 1970, or "".
 */
static bool read_when(const char *text, char when[32], const char **ret_flags)
{
	struct when read;

	if (!when_read(text, &read))
		return false;
	*ret_flags = read.is_absolute ? "a" : "";
	if (read.ns == WHEN_NEVER)
		(void)snprintf(when, 32, "never");
	else
		(void)snprintf(when, 32, "%" PRIu64, (read.ns + 999) / 1000);
	return true;
}

/* ---- commands; words[0] is the queue ---- */

enum status do_create(struct call *call, char **words)
{
	struct bytes *bytes = wire_output(call->wire);
	int result = handshake_load(call->wire, false, STEP_NS);
	const char *queue = words[0];
	unsigned settings = 0;

	if (result == 0)
		result = ask_time(call);
	if (result < 0)
		return complain(call, queue, result);
	for (; words[1 + settings]; settings++)
		if (!strchr(words[1 + settings], '='))
			return misused("a setting must be NAME=VALUE, not", words[1 + settings]);
	keys_call(&call->keys, bytes, "create", "ready state", 6 + 2 * settings);
	bytes_text(bytes, "until");
	bytes_number(bytes, call->until_us);
	bytes_text(bytes, "shards");
	bytes_number(bytes, call->shards);
	bytes_text(bytes, "shard");
	bytes_number(bytes, call->shard);
	for (words++; *words; words++) {
		const char *value = strchr(*words, '=');

		bytes_word(bytes, *words, (size_t)(value - *words));
		bytes_text(bytes, value + 1);
	}
	return ask(call, queue, NULL);
}

enum status do_put(struct call *call, char **words)
{
	const char *data = words[3] ? words[3] : "", *flags;
	size_t len = strlen(data);
	char when[32], both[3];

	if (!read_when(words[2], when, &flags))
		return misused(WHEN_WRONG, words[2]);
	if (strcmp(data, "-") == 0)
		data = console_input(&len);
	if (!data) {
		tell_error(call, words[1], -errno, "standard input cannot be read");
		return FAILED;
	}
	(void)snprintf(both, sizeof(both), "%s%s", flags, options.replace ? "r" : "");
	return change(call, words[1], "put", "due task state seats past",
	              WORDS(words[1], when, both), data, len);
}

enum status do_move(struct call *call, char **words)
{
	const char *flags;
	char when[32];

	if (!read_when(words[2], when, &flags))
		return misused(WHEN_WRONG, words[2]);
	return change(call, words[1], "move", "due task ready state past seats",
	              WORDS(words[1], when, flags), NULL, 0);
}

enum status do_done(struct call *call, char **words)
{
	struct reply *reply = NULL;
	enum status status;

	begin(call, "peek", "due task ready", WORDS(words[1]));
	status = ask_reply(call, words[1], &reply);
	if (status != GOOD)
		return status;
	if (reply_is(reply, 1, "waiting") || reply_is(reply, 1, "undelivered"))
		status = refuse(call, words[1], -EINVAL,
		                "no consumer has the task; cancel withdraws it");
	else
		status = change(call, words[1], "done", "due task ready state past",
		                WORDS(words[1], reply_text(reply_at(reply, 6))), NULL, 0);
	reply_free(reply);
	return status;
}

/* Reads the COUNT behind the queue's name, if there is one. */
static enum status read_count(char **words, const char **ret_count)
{
	uint64_t count;

	*ret_count = words[1] ? words[1] : "20";
	if (console_number(*ret_count, &count) && count > 0 && count <= COUNT_MAX)
		return GOOD;
	return misused(words[1][0] == '-' ? OPTION_BEHIND : "COUNT must be 1 to 1000, not",
	               words[1]);
}

enum status do_list(struct call *call, char **words)
{
	const char *count;

	if (read_count(words, &count) != GOOD)
		return WRONG_USE;
	begin(call, "list", "due task", WORDS("0", count));
	return ask(call, words[0], print_list);
}

enum status do_dead(struct call *call, char **words)
{
	char name[KEYS_NAME_BYTES];
	const char *count;

	if (read_count(words, &count) != GOOD)
		return WRONG_USE;
	keys_name(&call->keys, name, "dead");
	begin_plain(call, WORDS("XRANGE", name, "-", "+", "COUNT", count));
	return ask(call, words[0], print_entries);
}

enum status do_pause(struct call *call, char **words)
{
	char cursor[64] = "";

	do {
		struct reply *reply = NULL;
		enum status status = begin_change(call, words[0], "pause", "due task ready state",
		                                  WORDS(cursor), NULL, 0);

		if (status == GOOD)
			status = ask_reply(call, words[0], &reply);
		if (status != GOOD)
			return status;
		(void)snprintf(cursor, sizeof(cursor), "%s", reply_text(reply_at(reply, 1)));
		reply_free(reply);
	} while (cursor[0]);
	return say_done();
}

enum status do_load(struct call *call, char **words)
{
	int result = handshake_load(call->wire, true, STEP_NS);

	(void)words;
	return result < 0 ? complain(call, "load", result) : say_done();
}

/* ---- check ---- */

/* Adds to the numbers of tasks put back, and of entries and records removed. */
static int repair_server(struct call *call, uint64_t *restored, uint64_t *removed)
{
	char stage[8] = "task", cursor[64] = "0";

	while (strcmp(stage, "end") != 0) {
		struct reply *reply;
		int result;

		begin(call, "repair", "due task ready dead past state seats", WORDS(stage, cursor));
		result = handshake_call(call->wire, &reply, STEP_NS);
		if (result < 0)
			return result;
		result = (int)reply_integer_at(reply, 0);
		if (result == 0 &&
		    (reply_count(reply) < 5 || reply_len(reply_at(reply, 1)) >= sizeof(stage) ||
		     reply_len(reply_at(reply, 2)) >= sizeof(cursor)))
			result = -EPROTO;
		if (result == 0) {
			(void)snprintf(stage, sizeof(stage), "%s", reply_text(reply_at(reply, 1)));
			(void)snprintf(cursor, sizeof(cursor), "%s",
			               reply_text(reply_at(reply, 2)));
			*restored += (uint64_t)reply_integer_at(reply, 3);
			*removed += (uint64_t)reply_integer_at(reply, 4);
		}
		reply_free(reply);
		if (result < 0)
			return result;
	}
	return 0;
}

static enum status repair(struct call *call, const char *queue)
{
	uint64_t restored = 0, removed = 0;
	int result = 0;

	for (uint32_t i = 0; i < call->shards && result == 0; i++) {
		if (connect_call(call, i) < 0)
			continue; /* it was named already */
		result = handshake_load(call->wire, false, STEP_NS);
		if (result == 0)
			result = repair_server(call, &restored, &removed);
	}
	if (result < 0)
		return complain(call, queue, result);
	if (!options.json)
		(void)printf("repaired: %" PRIu64 " put back, %" PRIu64 " removed\n", restored,
		             removed);
	return GOOD;
}

/* Prints a fault. If it ends with the advice "timerhub-relay run", adds the queue's name. */
static void print_fault(const char *fault, const char *queue)
{
	const size_t len = strlen(fault);
	const bool advises = len > 4 && strcmp(fault + len - 4, " run") == 0;

	(void)printf("%s%s%s", fault, advises ? " " : "", advises ? queue : "");
}

static void print_report_json(const struct timerhub_relay_report *report, const char *keeps,
                              const char *queue)
{
	const char *quote = report->fault ? "\"" : "";

	(void)printf("{\"keeps\": %" PRIu32 ", \"keeps_text\": ", report->keeps);
	print_string(keeps);
	(void)printf(", \"replicas\": %" PRIu32 ", \"replicas_min\": %" PRIu32
	             ", \"evicts\": %" PRIu32 ", \"tasks\": %" PRIu64 ", \"placed\": %" PRIu64
	             ", \"relays\": %" PRIu64 ", \"overdue_ns\": %" PRIu64
	             ", \"round_trip_ns\": %" PRIu64 ", \"sound\": %s, \"fault\": %s",
	             report->replicas, report->replicas_min, report->evicts, report->tasks,
	             report->placed, report->relays, report->overdue_ns, report->round_trip_ns,
	             report->fault ? "false" : "true", quote);
	print_fault(report->fault ? report->fault : "null", queue);
	(void)printf("%s, \"faults\": [", quote);
	for (unsigned i = 0; check_fault_text(report->faults, i); i++) {
		(void)printf("%s\"", i > 0 ? ", " : "");
		print_fault(check_fault_text(report->faults, i), queue);
		(void)printf("\"");
	}
	(void)printf("]}\n");
}

static void print_report(const struct timerhub_relay_report *report, const char *keeps,
                         const char *queue)
{
	const char *fault = report->fault ? report->fault : "none";

	(void)printf("keeps: %s\nreplicas: %" PRIu32 ", at least %" PRIu32
	             "; a failover to a replica loses the last changes\n"
	             "tasks: %" PRIu64 "; the first waiting task is overdue by %" PRIu64 " ms\n"
	             "relays: %" PRIu64 "\nround trip: %" PRIu64
	             " us; --grace should be at least 4 round trips\n",
	             keeps, report->replicas, report->replicas_min, report->tasks,
	             report->overdue_ns / NS_PER_MS, report->relays,
	             report->round_trip_ns / NS_PER_US);
	for (unsigned i = 0; fault; fault = check_fault_text(report->faults, ++i)) {
		(void)printf("fault: %s",
		             console_colour(stdout, report->fault ? CONSOLE_BAD : CONSOLE_GOOD));
		print_fault(fault, queue);
		(void)printf("%s\n", console_colour(stdout, CONSOLE_PLAIN));
	}
}

enum status do_check(struct call *call, char **words)
{
	static const char *const keeps[] = {
		"unknown: the server does not show its configuration",
		"no persistence: if Redis is killed, all tasks are lost",
		"RDB only: if Redis is killed, all changes since the last snapshot are lost; "
		"tasks that ended after the snapshot are delivered again",
		"AOF without appendfsync always: if Redis is killed after a slow sync, or its "
		"machine loses power, up to 2 s of changes are lost",
		"AOF, appendfsync always: if Redis is killed or its machine loses power, nothing "
		"is lost",
	};
	struct timerhub_relay_report report;
	enum status status = GOOD;
	uint32_t answers = 0;
	int result;

	for (uint32_t i = 0; i < call->shards && status != REFUSED; i++) {
		enum status one = reach(call, i, NEEDS_QUEUE, words[0]);

		answers += one == GOOD;
		status = one == REFUSED ? one : worse(status, one);
	}
	if (status == REFUSED || answers == 0)
		return status;
	if (options.repair && repair(call, words[0]) != GOOD)
		return FAILED;
	result = timerhub_relay_check(options.redis, words[0], &report);
	if (result < 0)
		return complain(call, words[0], result);
	(options.json ? print_report_json : print_report)(&report, keeps[report.keeps], words[0]);
	return worse(status, report.fault ? REFUSED : GOOD);
}
