/* SPDX-License-Identifier: MIT */
/* Calls a Redis function of a queue on one of the queue's servers, and prints errors. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#include <relay/error_reply.h>
#include <relay/handshake.h>

#include "tool.h"

#define CALLER_WORDS 3u
#define US_PER_S UINT64_C(1000000)

struct reason {
	int error;
	const char *words;
};

/* ---- what went wrong ---- */

/* of a server or a connection */
static const struct reason failures[] = {
	{ -EACCES, "the server wants another user or password" },
	{ -EBADMSG, "a key of the queue holds something else" },
	{ -EEXIST,
	  "the queue was created with other servers, or with these servers in another order" },
	{ -EHOSTUNREACH, "the server is not known, or does not answer" },
	{ -EINVAL, "no such database, or --horizon, --grace or --batch is out of bounds" },
	{ -EIO, "the server cannot persist, and takes no changes" },
	{ -ENOSPC, "the server's memory is full" },
	{ -EOPNOTSUPP,
	  "the server is older than version 7.0, is a node of a cluster, or is a Sentinel" },
	{ -EPROTO, "the answers are not those of a Redis server" },
	{ -EROFS,
	  "the server takes no changes, because it is a replica, loads its data, or has too few "
	  "replicas" },
	{ -ETIMEDOUT, "the server did not answer in time; it may have made the change" },
};

/* what a Redis function of the queue returns when it refuses a call */
static const struct reason refusals[] = {
	{ -ENOENT, "there is no such task or entry" },
	{ -EEXIST, "the task exists, or the queue was created with other servers" },
	{ -EALREADY,
	  "the task has ended, and its id may be used again past_us after its put; --replace uses "
	  "it now" },
	{ -EAGAIN, "the queue is full" },
	{ -EBUSY, "a consumer has the task" },
	{ -EMSGSIZE, "the task has too much data" },
	{ -ERANGE, "the task's time is too far ahead" },
	{ -EINVAL, "the task's id or time, the entry, or a setting is not valid" },
	{ -EOPNOTSUPP, "a later version of timerhub has written the queue" },
	{ -ETIME, "the command arrived too late, and has changed nothing" },
};

static const char *find_words(const struct reason *reasons, size_t count, int error)
{
	for (size_t i = 0; i < count; i++)
		if (reasons[i].error == error)
			return reasons[i].words;
	return strerror(-error);
}

const char *failure_words(int error)
{
	if (error_reply_words(error)[0])
		return error_reply_words(error);
	return find_words(failures, sizeof(failures) / sizeof(failures[0]), error);
}

/* What precedes the next JSON value: "[" or "," in an array. */
static const char *before = "";

void begin_array(const struct call *call)
{
	before = options.json && call->shards > 1 ? "[" : "";
}

void end_array(void)
{
	if (before[0])
		(void)printf("%s]\n", before[0] == '[' ? before : "");
	before = "";
}

static void begin_value(void)
{
	(void)printf("%s", before);
	if (before[0])
		before = ",";
}

void tell_error(const struct call *call, const char *what, int error, const char *words)
{
	char url[ADDRESS_URL_BYTES];

	address_write(url, &call->addresses[call->shard]);
	(void)fprintf(stderr, "timerhub-relay: %s: %s: %s\n", what, url, words);
	if (!options.json)
		return;
	begin_value();
	(void)printf("{\"result\": %d, \"error\": ", error);
	print_string(words);
	(void)printf(", \"server\": ");
	print_string(url);
	(void)printf("}\n");
}

enum status complain(const struct call *call, const char *what, int error)
{
	tell_error(call, what, error, failure_words(error));
	return FAILED;
}

enum status refuse(const struct call *call, const char *what, int error, const char *words)
{
	tell_error(call, what, error, words);
	return REFUSED;
}

enum status out_of_memory(void)
{
	(void)fprintf(stderr, "timerhub-relay: %s\n", strerror(ENOMEM));
	return FAILED;
}

/* The reply has the setting's name, and its two bounds if there is such a setting. */
static enum status refuse_setting(const struct call *call, const char *what,
                                  const struct reply *reply)
{
	char words[256];

	if (reply_count(reply) == 2)
		(void)snprintf(words, sizeof(words), "there is no setting %.100s",
		               reply_text(reply_at(reply, 1)));
	else
		(void)snprintf(words, sizeof(words), "%.100s is %" PRId64 " to %" PRId64,
		               reply_text(reply_at(reply, 1)), reply_integer_at(reply, 2),
		               reply_integer_at(reply, 3));
	return refuse(call, what, -EINVAL, words);
}

/* ---- a call ---- */

static void warn_of_insecure(const struct call *call)
{
	char url[ADDRESS_URL_BYTES];

	for (uint32_t i = 0; i < call->shards; i++) {
		if (!call->addresses[i].tls.insecure)
			continue;
		address_write(url, &call->addresses[i]);
		(void)fprintf(
			stderr,
			"timerhub-relay: WARNING: %s: insecure=1: the server's certificate is "
			"not checked, so anybody on the way can read and change the tasks\n",
			url);
	}
}

enum status open_call(struct call *call, const char *queue)
{
	const char *redis = options.redis;
	int result = 0;

	call->wire = NULL;
	call->shards = call->shard = 0;
	if (keys_init(&call->keys, queue) < 0)
		return misused("a queue's name is 1 to 64 of A-Z a-z 0-9 _ . -, not", queue);
	while (result == 0 && (call->shards == 0 || redis)) {
		if (call->shards == KEYS_SHARDS_MAX)
			return misused("--redis, or $REDIS_URL, has too many servers", NULL);
		result = address_read(&call->addresses[call->shards], &redis);
		call->addresses[call->shards].slot = call->keys.slot;
		call->shards++;
	}
	/* without the address, which may have a password */
	if (result < 0)
		return misused("--redis, or $REDIS_URL, is not like redis://HOST:PORT or unix:PATH",
		               NULL);
	warn_of_insecure(call);
	return GOOD;
}

int connect_call(struct call *call, uint32_t shard)
{
	close_call(call);
	call->shard = shard;
	return handshake_open(&call->wire, &call->addresses[shard], NULL, NULL, STEP_NS);
}

static unsigned count_words(const char *const *words)
{
	unsigned count = 0;

	while (words[count])
		count++;
	return count;
}

static void add_words(struct call *call, const char *const *words)
{
	for (; *words; words++)
		bytes_text(wire_output(call->wire), *words);
}

void begin(struct call *call, const char *function, const char *keys, const char *const *words)
{
	keys_call(&call->keys, wire_output(call->wire), function, keys, count_words(words));
	add_words(call, words);
}

void begin_plain(struct call *call, const char *const *words)
{
	bytes_command(wire_output(call->wire), count_words(words));
	add_words(call, words);
}

static int find_queue(struct call *call)
{
	static const char *const parts[] = { "state", "task", "due", "ready", "dead" };
	enum { PARTS = sizeof(parts) / sizeof(parts[0]) };
	char names[PARTS][KEYS_NAME_BYTES];
	struct reply *reply;
	int result;

	for (unsigned i = 0; i < PARTS; i++)
		keys_name(&call->keys, names[i], parts[i]);
	begin_plain(call, WORDS("EXISTS", names[0], names[1], names[2], names[3], names[4]));
	result = handshake_call(call->wire, &reply, STEP_NS);
	if (result < 0)
		return result;
	result = reply_integer(reply) > 0 ? 0 : -ENOENT;
	reply_free(reply);
	return result;
}

/* -EEXIST: the queue has another number of servers, or this server another index. */
static int check_servers(struct call *call)
{
	char state[KEYS_NAME_BYTES];
	struct reply *reply;
	int result;

	keys_name(&call->keys, state, "state");
	begin_plain(call, WORDS("HMGET", state, "shards", "shard"));
	result = handshake_call(call->wire, &reply, STEP_NS);
	if (result < 0)
		return result;
	/* The reply is nil if the queue does not exist, or if a relay has created it anew. */
	if (reply_type(reply_at(reply, 0)) == REPLY_TEXT &&
	    (reply_integer(reply_at(reply, 0)) != call->shards ||
	     reply_integer(reply_at(reply, 1)) != call->shard))
		result = -EEXIST;
	reply_free(reply);
	return result;
}

enum status reach(struct call *call, uint32_t shard, enum needs needs, const char *what)
{
	char words[256];
	uint64_t version = 1;
	int result = connect_call(call, shard);

	if (result == 0 && (needs == NEEDS_QUEUE || needs == NEEDS_KEYS))
		result = find_queue(call);
	if (result == -ENOENT) {
		(void)snprintf(words, sizeof(words),
		               "there is no such queue; 'timerhub-relay create %.64s' or "
		               "'timerhub-relay run %.64s' creates it",
		               what, what);
		return refuse(call, what, result, words);
	}
	if (result == 0 && needs != NEEDS_NOTHING)
		result = check_servers(call);
	if (result == -EEXIST)
		return refuse(call, what, result, failure_words(result));
	if (result == 0 && needs >= NEEDS_FUNCTIONS)
		result = handshake_version(call->wire, &version, STEP_NS);
	if (result == 0 && version == 0) {
		tell_error(
			call, what, -EROFS,
			"the server has no functions of this version of timerhub; 'timerhub-relay "
			"load' or a relay of this version loads them");
		return FAILED;
	}
	return result < 0 ? complain(call, what, result) : GOOD;
}

void close_call(struct call *call)
{
	wire_close(call->wire);
	call->wire = NULL;
}

/* ---- a change, which has no effect after the tool has given up ---- */

int ask_time(struct call *call)
{
	struct reply *reply;
	int result;

	begin_plain(call, WORDS("TIME"));
	result = handshake_call(call->wire, &reply, STEP_NS);
	if (result < 0)
		return result;
	call->until_us = (uint64_t)reply_integer_at(reply, 0) * US_PER_S +
	                 (uint64_t)reply_integer_at(reply, 1) + STEP_NS / NS_PER_US;
	call->until_ns = clock_monotonic_ns() + STEP_NS;
	reply_free(reply);
	return 0;
}

enum status begin_change(struct call *call, const char *what, const char *function,
                         const char *keys, const char *const *words, const char *data, size_t len)
{
	struct bytes *bytes = wire_output(call->wire);
	int result = ask_time(call);
	uint64_t random = 0;
	char holder[64];

	if (result < 0)
		return complain(call, what, result);
	keys_call(&call->keys, bytes, function, keys,
	          count_words(words) + (data ? 1 : 0) + CALLER_WORDS);
	add_words(call, words);
	if (data)
		bytes_word(bytes, data, len);
	/* Nothing fences the tool's only command, so a holder like another does no harm. */
	(void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
	(void)snprintf(holder, sizeof(holder), "0-%016" PRIx64, random);
	bytes_number(bytes, call->until_us);
	bytes_text(bytes, holder);
	bytes_number(bytes, 1);
	return GOOD;
}

enum status change(struct call *call, const char *what, const char *function, const char *keys,
                   const char *const *words, const char *data, size_t len)
{
	enum status status = begin_change(call, what, function, keys, words, data, len);

	return status == GOOD ? ask(call, what, NULL) : status;
}

/* The command may still be on its way, so wait until it has no effect any more. */
static int give_up(struct call *call)
{
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();

		if (now_ns >= call->until_ns)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, (int)((call->until_ns - now_ns) / NS_PER_MS) + 1);
	}
}

enum status say_done(void)
{
	if (!options.json)
		return GOOD;
	begin_value();
	(void)printf("{\"result\": 0}\n");
	return GOOD;
}

enum status ask_reply(struct call *call, const char *what, struct reply **ret_reply)
{
	struct reply *reply;
	int result = handshake_call(call->wire, &reply, STEP_NS);
	enum status status = GOOD;

	if (result == -EHOSTUNREACH && call->until_ns > 0)
		result = give_up(call);
	call->until_ns = 0;
	if (result < 0)
		return complain(call, what, result);
	result = reply_type(reply_at(reply, 0)) == REPLY_INTEGER ? (int)reply_integer_at(reply, 0)
	                                                         : 0;
	if (result == -ENOENT && call->may_be_elsewhere)
		status = REFUSED;
	else if (result == -EINVAL && reply_count(reply) > 1)
		status = refuse_setting(call, what, reply);
	else if (result < 0)
		status = refuse(
			call, what, result,
			find_words(refusals, sizeof(refusals) / sizeof(refusals[0]), result));
	if (status == GOOD)
		*ret_reply = reply;
	else
		reply_free(reply);
	return status;
}

enum status ask(struct call *call, const char *what, void (*print)(const struct reply *reply))
{
	struct reply *reply = NULL;
	enum status status = ask_reply(call, what, &reply);

	if (status != GOOD)
		return status;
	if (print)
		print(reply);
	else
		status = say_done();
	reply_free(reply);
	return status;
}
