/* SPDX-License-Identifier: MIT */
/*
 * The calls about a whole queue: pause, resume and each. They ask each server in several steps,
 * each of which says where the next one goes on. Tested by tests/relay/test_calls.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancellation.h"
#include "relay/relay.h"

#define ROWS_MAX 128u /* how many tasks one step lists */
#define ROW_FIELDS 8u
#define CURSOR_BYTES 192

/* The state of a call that asks a server several times, because one reply would be too long. */
struct step {
	char cursor[CURSOR_BYTES]; /* empty if this server has no more */
	struct timerhub_relay_info *infos;
	unsigned count;
	uint32_t which;
	int result;
};

static void copy_text(char *to, size_t size, const struct reply *from)
{
	size_t len = reply_len(from) < size ? reply_len(from) : size - 1;

	memcpy(to, reply_text(from), len);
	to[len] = '\0';
}

/* Stores the reply's cursor, a text. The next request sends it back, to go on from there. */
static void read_cursor(void *arg, const struct reply *reply)
{
	struct step *step = arg;

	if (reply_len(reply_at(reply, 1)) >= sizeof(step->cursor))
		step->result = -EPROTO;
	else
		copy_text(step->cursor, sizeof(step->cursor), reply_at(reply, 1));
}

static void read_row(struct timerhub_relay_info *info, const struct reply *reply, size_t at,
                     uint32_t which)
{
	int64_t due_us = reply_integer_at(reply, at + 2);

	*info = (struct timerhub_relay_info){
		.due_ns = due_us < 0 ? TIMERHUB_NEVER : (uint64_t)due_us * NS_PER_US,
		.since_ns = (uint64_t)reply_integer_at(reply, at + 3) * NS_PER_US,
		.attempts = (uint64_t)reply_integer_at(reply, at + 4),
		.interval_ns = (uint64_t)reply_integer_at(reply, at + 5) * NS_PER_US,
		.data_len = (uint64_t)reply_integer_at(reply, at + 6),
		.which = which,
		.reason = (uint32_t)reply_integer_at(reply, at + 7),
	};
	copy_text(info->id, sizeof(info->id), reply_at(reply, at));
	copy_text(info->holder, sizeof(info->holder), reply_at(reply, at + 1));
}

static void read_rows(void *arg, const struct reply *reply)
{
	struct step *step = arg;

	read_cursor(arg, reply);
	step->count = 0;
	for (size_t at = 2; at + ROW_FIELDS <= reply_count(reply) && step->count < ROWS_MAX;
	     at += ROW_FIELDS)
		read_row(&step->infos[step->count++], reply, at, step->which);
}

static int ask_step(struct shard *shard, struct request *request, struct step *step)
{
	char cursor[CURSOR_BYTES];
	int result;

	memcpy(cursor, step->cursor, sizeof(cursor));
	request->id = cursor;
	request->arg = step;
	step->cursor[0] = '\0';
	result = mailbox_ask(&shard->mailbox, request);
	return result < 0 ? result : step->result;
}

int timerhub_relay_pause(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	int result = relay_may_call(relay);

	for (uint32_t i = 0; result == 0 && i < relay->shared.shard_count; i++) {
		struct step step = { .which = 0 };

		do {
			struct request request = { .kind = REQUEST_PAUSE, .read = read_cursor };

			result = ask_step(&relay->shards[i], &request, &step);
		} while (result == 0 && step.cursor[0]);
	}
	return result;
}

int timerhub_relay_resume(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	int result = relay_may_call(relay);

	for (uint32_t i = 0; result == 0 && i < relay->shared.shard_count; i++) {
		struct request request = { .kind = REQUEST_RESUME };

		result = mailbox_ask(&relay->shards[i].mailbox, &request);
	}
	return result;
}

/*
 * Calls `fn` for each task of one server. Returns 0, an error, or what `fn` has returned if that is
 * not 0.
 */
static int each_of(struct shard *shard, struct step *step, timerhub_relay_each_fn *fn,
                   void *context)
{
	static const char *const words[] = { "waiting", "taken", "parked" };

	step->cursor[0] = '\0';
	do {
		struct request request = {
			.kind = REQUEST_EACH,
			.flags = words[step->which],
			.count = ROWS_MAX,
			.read = read_rows,
		};
		int result = ask_step(shard, &request, step);

		for (unsigned i = 0; result == 0 && i < step->count; i++)
			result = fn(&step->infos[i], context);
		if (result != 0)
			return result;
	} while (step->cursor[0]);
	return 0;
}

int timerhub_relay_each(struct timerhub_relay *relay, uint32_t which, timerhub_relay_each_fn *fn,
                        void *context)
{
	CANCELLATION_HELD;
	struct step step = { .which = which };
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!fn || which > TIMERHUB_RELAY_PARKED)
		return -EINVAL;
	step.infos = calloc(ROWS_MAX, sizeof(*step.infos));
	if (!step.infos)
		return -ENOMEM;
	for (uint32_t i = 0; result == 0 && i < relay->shared.shard_count; i++)
		result = each_of(&relay->shards[i], &step, fn, context);
	free(step.infos);
	return result;
}
