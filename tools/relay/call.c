/* SPDX-License-Identifier: MIT */
/* A call of a queue's function, on the server that has to do with it; and what went wrong. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <greet.h>

#include "tool.h"

struct reason {
	int error;
	const char *words;
};

/* ---- what went wrong ---- */

/* Why a server does not serve. */
static const struct reason failures[] = {
	{ -EACCES, "the server wants another password, or refuses the rights" },
	{ -EBADMSG, "a key of the queue holds something else" },
	{ -EEXIST, "the queue is spread over other servers, or over these in another order" },
	{ -EHOSTUNREACH, "the server is not known, or does not answer" },
	{ -EIO, "the server cannot persist, and takes no changes" },
	{ -ENOSPC, "the server's memory is full" },
	{ -EOPNOTSUPP,
	  "the server is before 7.0, of a cluster, or a Sentinel; or TLS is asked for" },
	{ -EPROTO, "the answers are not those of a Redis server" },
	{ -EROFS, "the server takes no changes: a replica, loading, or short of replicas" },
};

/* What a queue refuses. */
static const struct reason refusals[] = {
	{ -ENOENT, "there is none" },     { -EEXIST, "it is there, or was finished just now" },
	{ -EAGAIN, "the queue is full" }, { -EBUSY, "a taker has it" },
	{ -EMSGSIZE, "too much data" },   { -ERANGE, "too far ahead" },
	{ -EINVAL, "a bad argument" },    { -EOPNOTSUPP, "a later version has written the queue" },
};

static const char *find_words(const struct reason *reasons, size_t count, int error)
{
	for (size_t i = 0; i < count; i++)
		if (reasons[i].error == error)
			return reasons[i].words;
	return strerror(-error);
}

static void tell(const struct options *options, const char *what, int error, const char *words)
{
	(void)fprintf(stderr, "timerhub-relay: %s: %s\n", what, words);
	if (options->json)
		(void)printf("{\"result\": %d, \"error\": \"%s\"}\n", error, words);
}

enum status complain(const struct options *options, const char *what, int error)
{
	tell(options, what, error,
	     find_words(failures, sizeof(failures) / sizeof(failures[0]), error));
	return FAILED;
}

static enum status refuse(const struct options *options, const char *what, int error)
{
	tell(options, what, error,
	     find_words(refusals, sizeof(refusals) / sizeof(refusals[0]), error));
	return REFUSED;
}

/* ---- a call ---- */

int open_call(struct call *call, const struct options *options, const char *queue)
{
	const char *redis = options->redis;
	int result = keys_init(&call->keys, queue);

	call->options = options;
	call->wire = NULL;
	call->shards = 0;
	while (result == 0 && (call->shards == 0 || redis)) {
		if (call->shards == KEYS_SHARDS_MAX)
			return -EINVAL;
		result = address_read(&call->addresses[call->shards], &redis);
		call->shards++;
	}
	return result;
}

int connect_call(struct call *call, uint32_t shard)
{
	close_call(call);
	call->shard = shard;
	return greet_open(&call->wire, &call->addresses[shard], NULL, STEP_NS);
}

void close_call(struct call *call)
{
	wire_close(call->wire);
	call->wire = NULL;
}

void add(struct call *call, const char *word)
{
	bytes_text(wire_output(call->wire), word);
}

void begin(struct call *call, const char *function, const char *keys, unsigned arguments)
{
	keys_call(&call->keys, wire_output(call->wire), function, keys, arguments);
}

enum status say_done(const struct call *call)
{
	if (call->options->json)
		(void)printf("{\"result\": 0}\n");
	return GOOD;
}

enum status ask(struct call *call, const char *what,
                void (*print)(const struct reply *reply, bool json))
{
	struct reply *reply;
	int result = greet_call(call->wire, &reply, STEP_NS);
	enum status status = GOOD;

	if (result < 0)
		return complain(call->options, what, result);
	result = reply_type(reply_at(reply, 0)) == REPLY_INTEGER ? (int)reply_integer_at(reply, 0)
	                                                         : 0;
	if (result == -ENOENT && call->may_be_elsewhere)
		status = REFUSED;
	else if (result < 0)
		status = refuse(call->options, what, result);
	else if (print)
		print(reply, call->options->json);
	else
		status = say_done(call);
	reply_free(reply);
	return status;
}
