/* SPDX-License-Identifier: MIT */
/*
 * The calls that change tasks: put, cancel, move, done, retry and others, for one task or for many.
 * Any thread may make them. Each change becomes a request, which the thread of the task's server
 * (its shard) sends, and whose reply request.c reads. A call for many tasks first queues all
 * requests, and then waits for all replies.
 */
#include "relay/change.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancellation.h"
#include "base/text.h"

/* The latest due time, in microseconds, that a double in Redis holds exactly. */
#define LAST_US ((UINT64_C(1) << 53) - 1)
/* How many changes are queued at a time, because each needs memory until it is answered. */
#define QUEUED_MAX 1024u

static bool is_id(const char *id)
{
	size_t len = id ? strnlen(id, TIMERHUB_RELAY_ID_BYTES) : 0;

	return len > 0 && len < TIMERHUB_RELAY_ID_BYTES;
}

/* Writes a time as whole microseconds, rounded up. Returns -ERANGE if that is beyond LAST_US. */
static int write_when(char when[REQUEST_WHEN_BYTES], uint64_t when_ns)
{
	struct text text = { .buffer = when, .bytes = REQUEST_WHEN_BYTES };
	uint64_t when_us = when_ns / NS_PER_US + (when_ns % NS_PER_US != 0);

	if (when_ns == TIMERHUB_NEVER)
		text_add(&text, "never");
	else if (when_us > LAST_US)
		return -ERANGE;
	else
		text_add_decimal(&text, when_us, 0);
	text_end(&text);
	return 0;
}

/*
 * Makes an id for a task from the relay's random seed and a counter, so that no other process makes
 * the same one.
 */
static void make_id(const struct timerhub_relay *relay, uint64_t number,
                    char id[TIMERHUB_RELAY_ID_BYTES])
{
	(void)snprintf(id, TIMERHUB_RELAY_ID_BYTES, "%016" PRIx64 "-%" PRIu64, relay->seed, number);
}

static bool is_delivery(const struct timerhub_relay_task *task)
{
	return task && is_id(task->id) && task->delivery[0] &&
	       strnlen(task->delivery, TIMERHUB_RELAY_DELIVERY_BYTES) <
	               TIMERHUB_RELAY_DELIVERY_BYTES;
}

/* ---- a change as a request ---- */

static int read_interval(uint64_t *ret_us, uint64_t interval_ns)
{
	*ret_us = interval_ns / NS_PER_US + (interval_ns % NS_PER_US != 0);
	return *ret_us > LAST_US ? -ERANGE : 0;
}

static int read_put(struct timerhub_relay *relay, const struct timerhub_relay_change *change,
                    struct request *request, char made[TIMERHUB_RELAY_ID_BYTES])
{
	static const char *const words[] = { "", "a", "r", "ar" };
	uint64_t number;
	int result;

	if ((change->id && !is_id(change->id)) || (!change->data && change->data_len > 0) ||
	    (change->flags & ~(TIMERHUB_ABSOLUTE | TIMERHUB_RELAY_REPLACE)) != 0)
		return -EINVAL;
	if (change->data_len > REQUEST_DATA_MAX)
		return -EMSGSIZE;
	*request = (struct request){
		.kind = REQUEST_PUT,
		.id = change->id,
		.flags = words[(change->flags & TIMERHUB_ABSOLUTE ? 1 : 0) +
		               (change->flags & TIMERHUB_RELAY_REPLACE ? 2 : 0)],
		.data = change->data_len > 0 ? change->data : "",
		.data_len = change->data_len,
		.made_id = !change->id,
	};
	lock_take(&relay->shared.lock);
	number = relay->puts++;
	lock_give(&relay->shared.lock);
	request->call = relay->seed + number;
	if (!change->id) {
		make_id(relay, number, made);
		request->id = made;
	}
	result = read_interval(&request->interval_us, change->interval_ns);
	return result < 0 ? result : write_when(request->when, change->when_ns);
}

static int read_move(const struct timerhub_relay_change *change, struct request *request)
{
	if (!is_id(change->id) || (change->flags & ~TIMERHUB_ABSOLUTE) != 0)
		return -EINVAL;
	*request = (struct request){
		.kind = REQUEST_MOVE,
		.id = change->id,
		.flags = change->flags & TIMERHUB_ABSOLUTE ? "a" : "",
	};
	return write_when(request->when, change->when_ns);
}

/* Makes the request to finish, retry or park (set aside) a task that was taken. */
static int read_answer(const struct timerhub_relay_change *change, struct request *request)
{
	const struct timerhub_relay_task *task = change->task;

	if (!is_delivery(task))
		return -EINVAL;
	*request = (struct request){
		.kind = change->op == TIMERHUB_RELAY_DONE    ? REQUEST_DONE
		        : change->op == TIMERHUB_RELAY_RETRY ? REQUEST_RETRY
		                                             : REQUEST_PARK,
		.id = task->id,
		.delivery = task->delivery,
		.reason = change->reason,
	};
	if (change->op == TIMERHUB_RELAY_DONE && task->interval_ns > 0)
		request->periods = task->periods;
	return change->op == TIMERHUB_RELAY_RETRY ? write_when(request->when, change->when_ns) : 0;
}

int change_read(struct timerhub_relay *relay, const struct timerhub_relay_change *change,
                struct request *request, char made[TIMERHUB_RELAY_ID_BYTES])
{
	for (unsigned i = 0; i < sizeof(change->reserved) / sizeof(change->reserved[0]); i++)
		if (change->reserved[i] != 0)
			return -EINVAL;
	switch (change->op) {
	case TIMERHUB_RELAY_PUT:
		return read_put(relay, change, request, made);
	case TIMERHUB_RELAY_CANCEL:
		*request = (struct request){ .kind = REQUEST_CANCEL, .id = change->id };
		return is_id(change->id) && change->flags == 0 ? 0 : -EINVAL;
	case TIMERHUB_RELAY_MOVE:
		return read_move(change, request);
	case TIMERHUB_RELAY_DONE:
	case TIMERHUB_RELAY_RETRY:
	case TIMERHUB_RELAY_PARK:
		return change->flags == 0 ? read_answer(change, request) : -EINVAL;
	default:
		return -EINVAL;
	}
}

bool change_ends_delivery(const struct request *request, int result)
{
	return (request->kind == REQUEST_DONE || request->kind == REQUEST_RETRY ||
	        request->kind == REQUEST_PARK) &&
	       (result == 0 || result == -ENOENT || result == -ESTALE);
}

/*
 * Frees the taken task that `delivery` and `id` identify, with its data. Returns false if no caller
 * holds such a task.
 */
static bool let_go(struct timerhub_relay *relay, const char *delivery, const char *id)
{
	bool known;

	lock_take(&relay->shared.lock);
	known = deliveries_drop(&relay->shared.deliveries, delivery, id);
	lock_give(&relay->shared.lock);
	return known;
}

/* ---- one change ---- */

/* Makes one change and waits for its result. The id of a put is stored in change->ret_id. */
static int make_change(struct timerhub_relay *relay, struct timerhub_relay_change *change)
{
	char made[TIMERHUB_RELAY_ID_BYTES];
	struct request request;
	int result = relay_may_call(relay);

	if (result == 0)
		result = change_read(relay, change, &request, made);
	if (result < 0)
		return result;
	result = mailbox_ask(&relay_shard_of(relay, request.id)->mailbox, &request);
	if (result == 0 && request.kind == REQUEST_PUT)
		memcpy(change->ret_id, request.id, strlen(request.id) + 1);
	if (change_ends_delivery(&request, result))
		(void)let_go(relay, request.delivery, request.id);
	return result;
}

int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                       uint32_t flags, const void *data, size_t data_len, char *ret_id)
{
	CANCELLATION_HELD;
	struct timerhub_relay_change change = {
		.op = TIMERHUB_RELAY_PUT,
		.flags = flags,
		.id = id,
		.when_ns = when_ns,
		.data = data,
		.data_len = data_len,
	};
	int result = make_change(relay, &change);

	if (result == 0 && ret_id)
		memcpy(ret_id, change.ret_id, strlen(change.ret_id) + 1);
	return result;
}

int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id)
{
	CANCELLATION_HELD;

	return make_change(
		relay, &(struct timerhub_relay_change){ .op = TIMERHUB_RELAY_CANCEL, .id = id });
}

int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                        uint32_t flags)
{
	CANCELLATION_HELD;

	return make_change(relay, &(struct timerhub_relay_change){ .op = TIMERHUB_RELAY_MOVE,
	                                                           .flags = flags,
	                                                           .id = id,
	                                                           .when_ns = when_ns });
}

int timerhub_relay_done(struct timerhub_relay *relay, const struct timerhub_relay_task *task)
{
	CANCELLATION_HELD;

	return make_change(
		relay, &(struct timerhub_relay_change){ .op = TIMERHUB_RELAY_DONE, .task = task });
}

int timerhub_relay_retry(struct timerhub_relay *relay, const struct timerhub_relay_task *task,
                         uint64_t delay_ns)
{
	CANCELLATION_HELD;

	return make_change(relay, &(struct timerhub_relay_change){ .op = TIMERHUB_RELAY_RETRY,
	                                                           .when_ns = delay_ns,
	                                                           .task = task });
}

int timerhub_relay_park(struct timerhub_relay *relay, const struct timerhub_relay_task *task,
                        uint32_t reason)
{
	CANCELLATION_HELD;

	return make_change(relay, &(struct timerhub_relay_change){ .op = TIMERHUB_RELAY_PARK,
	                                                           .task = task,
	                                                           .reason = reason });
}

int timerhub_relay_touch(struct timerhub_relay *relay, const struct timerhub_relay_task *task)
{
	CANCELLATION_HELD;
	struct request request = {
		.kind = REQUEST_TOUCH,
		.id = task ? task->id : NULL,
		.delivery = task ? task->delivery : NULL,
	};
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!is_delivery(task))
		return -EINVAL;
	return mailbox_ask(&relay_shard_of(relay, task->id)->mailbox, &request);
}

int timerhub_relay_release(struct timerhub_relay *relay, const struct timerhub_relay_task *task)
{
	CANCELLATION_HELD;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!is_delivery(task))
		return -EINVAL;
	return let_go(relay, task->delivery, task->id) ? 0 : -ENOENT;
}

/* ---- many changes ---- */

struct queued {
	struct request request;
	char made[TIMERHUB_RELAY_ID_BYTES];
};

static void queue_changes(struct timerhub_relay *relay, struct timerhub_relay_change *changes,
                          struct queued *queued, unsigned count, uint32_t op)
{
	for (unsigned i = 0; i < count; i++) {
		struct timerhub_relay_change one = changes[i];

		one.op = op;
		changes[i].result =
			changes[i].op != 0 && changes[i].op != op
				? -EINVAL
				: change_read(relay, &one, &queued[i].request, queued[i].made);
	}
	lock_take(&relay->shared.lock);
	for (unsigned i = 0; i < count; i++)
		if (changes[i].result == 0)
			mailbox_post(&relay_shard_of(relay, queued[i].request.id)->mailbox,
			             &queued[i].request);
	lock_give(&relay->shared.lock);
}

/*
 * Waits for the replies to queued changes. Adds to *sent how many of them were sent, and to *good
 * how many have succeeded.
 */
static void await_changes(struct timerhub_relay *relay, struct timerhub_relay_change *changes,
                          struct queued *queued, unsigned count, unsigned *sent, unsigned *good)
{
	for (unsigned i = 0; i < count; i++) {
		struct request *request = &queued[i].request;

		if (changes[i].result < 0)
			continue;
		changes[i].result = mailbox_wait(request);
		(*sent)++;
		*good += changes[i].result == 0;
		if (changes[i].result == 0 && request->kind == REQUEST_PUT)
			memcpy(changes[i].ret_id, request->id, strlen(request->id) + 1);
		if (change_ends_delivery(request, changes[i].result))
			(void)let_go(relay, request->delivery, request->id);
	}
}

static int make_changes(struct timerhub_relay *relay, struct timerhub_relay_change *changes,
                        unsigned count, uint32_t op)
{
	unsigned sent = 0, good = 0, most = count < QUEUED_MAX ? count : QUEUED_MAX;
	int result = relay_may_call(relay);
	struct queued *queued;

	if (result < 0)
		return result;
	if ((!changes && count > 0) || count > INT_MAX)
		return -EINVAL;
	if (count == 0)
		return 0;
	queued = calloc(most, sizeof(*queued));
	if (!queued)
		return -ENOMEM;
	for (unsigned begin = 0; begin < count; begin += most) {
		unsigned some = count - begin < most ? count - begin : most;

		queue_changes(relay, changes + begin, queued, some, op);
		await_changes(relay, changes + begin, queued, some, &sent, &good);
	}
	free(queued);
	return sent > 0 ? (int)good : changes[0].result;
}

int timerhub_relay_put_many(struct timerhub_relay *relay, struct timerhub_relay_change *changes,
                            unsigned count)
{
	CANCELLATION_HELD;

	return make_changes(relay, changes, count, TIMERHUB_RELAY_PUT);
}

int timerhub_relay_done_many(struct timerhub_relay *relay, struct timerhub_relay_change *changes,
                             unsigned count)
{
	CANCELLATION_HELD;

	return make_changes(relay, changes, count, TIMERHUB_RELAY_DONE);
}

int timerhub_relay_cancel_many(struct timerhub_relay *relay, struct timerhub_relay_change *changes,
                               unsigned count)
{
	CANCELLATION_HELD;

	return make_changes(relay, changes, count, TIMERHUB_RELAY_CANCEL);
}
