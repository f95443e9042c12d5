/* SPDX-License-Identifier: MIT */
/* See greet.h. Blocks up to a timeout for each answer. */
#include "greet.h"

#include <errno.h>
#include <string.h>

#include "answer.h"
#include "functions.h"

int greet_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns)
{
	struct reply *reply;
	int result = wire_call(wire, &reply, timeout_ns);

	/* Nothing of what is said here is in doubt: it changes no task. */
	if (result == -ETIMEDOUT)
		return -EHOSTUNREACH;
	if (result < 0)
		return result;
	if (reply_type(reply) == REPLY_ERROR) {
		result = answer_of(reply_text(reply)).error;
		reply_free(reply);
		return result;
	}
	*ret_reply = reply;
	return 0;
}

static int say(struct wire *wire, uint64_t timeout_ns)
{
	struct reply *reply = NULL;
	int result = greet_call(wire, &reply, timeout_ns);

	reply_free(reply);
	return result;
}

int greet(struct wire *wire, const struct address *address, uint64_t timeout_ns)
{
	struct bytes *output = wire_output(wire);
	int result = 0;

	if (address->password[0]) {
		bytes_command(output, address->user[0] ? 3 : 2);
		bytes_text(output, "AUTH");
		if (address->user[0])
			bytes_text(output, address->user);
		bytes_text(output, address->password);
		result = say(wire, timeout_ns);
	}
	if (result == 0 && address->database > 0) {
		bytes_command(output, 2);
		bytes_text(output, "SELECT");
		bytes_number(output, address->database);
		result = say(wire, timeout_ns);
	}
	return result;
}

/* The version of the functions there; 0: there are none. */
static int ask_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns)
{
	struct reply *reply;
	int result;

	bytes_command(wire_output(wire), 3);
	bytes_text(wire_output(wire), "FCALL_RO");
	bytes_text(wire_output(wire), "timerhub_version");
	bytes_text(wire_output(wire), "0");
	result = wire_call(wire, &reply, timeout_ns);
	if (result < 0)
		return result == -ETIMEDOUT ? -EHOSTUNREACH : result;
	*ret_version = (uint64_t)reply_integer_at(reply, 1);
	if (reply_type(reply) == REPLY_ERROR &&
	    strncmp(reply_text(reply), "ERR Function not found", 22) != 0)
		result = answer_of(reply_text(reply)).error;
	reply_free(reply);
	return result;
}

int greet_load(struct wire *wire, uint64_t timeout_ns)
{
	struct bytes *output = wire_output(wire);
	uint64_t version = 0;
	int result = ask_version(wire, &version, timeout_ns);

	if (result < 0 || version >= functions_version)
		return result;
	bytes_command(output, 4);
	bytes_text(output, "FUNCTION");
	bytes_text(output, "LOAD");
	bytes_text(output, "REPLACE");
	bytes_word(output, functions_text, functions_text_len);
	return say(wire, timeout_ns);
}

static uint64_t setting(const struct reply *reply, const char *name)
{
	for (size_t i = 3; i + 1 < reply_count(reply); i += 2)
		if (reply_is(reply, i, name))
			return (uint64_t)reply_integer_at(reply, i + 1);
	return 0;
}

int greet_create(struct wire *wire, const struct keys *keys, struct greeting *ret_greeting,
                 uint64_t timeout_ns)
{
	struct reply *reply;
	int result;

	keys_call(keys, wire_output(wire), "create", "ready state", 0);
	result = greet_call(wire, &reply, timeout_ns);
	if (result < 0)
		return result;
	result = (int)reply_integer_at(reply, 0);
	if (result == 0)
		*ret_greeting = (struct greeting){
			.now_us = (uint64_t)reply_integer_at(reply, 2),
			.lease_us = setting(reply, "lease_us"),
			.past_us = setting(reply, "past_us"),
			.shards = setting(reply, "shards"),
		};
	reply_free(reply);
	return result > 0 ? -EPROTO : result;
}
