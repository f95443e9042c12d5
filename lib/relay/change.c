/* SPDX-License-Identifier: MIT */
/*
 * Put, cancel, move, done, retry, touch and release, for any thread: a request to the task's shard,
 * whose reply request.c reads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cancellation.h"
#include "relay/relay.h"

#define NS_PER_US UINT64_C(1000)
/* The latest due time, in microseconds, that a double in Redis holds exactly. */
#define LAST_US ((UINT64_C(1) << 53) - 1)

static bool is_id(const char *id)
{
	size_t len = id ? strnlen(id, TIMERHUB_RELAY_ID_BYTES) : 0;

	return len > 0 && len < TIMERHUB_RELAY_ID_BYTES;
}

/* Whole microseconds, rounded up; -ERANGE beyond LAST_US. */
static int write_when(char when[REQUEST_WHEN_BYTES], uint64_t when_ns)
{
	uint64_t when_us = when_ns / NS_PER_US + (when_ns % NS_PER_US != 0);

	if (when_ns == TIMERHUB_NEVER) {
		(void)snprintf(when, REQUEST_WHEN_BYTES, "never");
		return 0;
	}
	if (when_us > LAST_US)
		return -ERANGE;
	(void)snprintf(when, REQUEST_WHEN_BYTES, "%" PRIu64, when_us);
	return 0;
}

/*
 * Make a task's id from the relay's random seed and a counter, so that no other process makes the
 * same id.
 */
static void make_id(const struct timerhub_relay *relay, uint64_t number,
                    char id[TIMERHUB_RELAY_ID_BYTES])
{
	(void)snprintf(id, TIMERHUB_RELAY_ID_BYTES, "%016" PRIx64 "-%" PRIu64, relay->seed, number);
}

int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                       uint32_t flags, const void *data, size_t data_len, char *ret_id)
{
	CANCELLATION_HELD;
	static const char *const words[] = { "", "a", "r", "ar" };
	char made[TIMERHUB_RELAY_ID_BYTES];
	struct request request = {
		.kind = REQUEST_PUT,
		.data = data_len > 0 ? data : "",
		.data_len = data_len,
		.made_id = !id,
	};
	uint64_t number;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if ((id && !is_id(id)) || (!data && data_len > 0) ||
	    (flags & ~(TIMERHUB_ABSOLUTE | TIMERHUB_RELAY_REPLACE)) != 0)
		return -EINVAL;
	if (data_len > REQUEST_DATA_MAX)
		return -EMSGSIZE;
	lock_take(&relay->shared.lock);
	number = relay->puts++;
	lock_give(&relay->shared.lock);
	request.call = relay->seed + number;
	if (!id)
		make_id(relay, number, made);
	request.id = id ? id : made;
	request.flags = words[(flags & TIMERHUB_ABSOLUTE ? 1 : 0) +
	                      (flags & TIMERHUB_RELAY_REPLACE ? 2 : 0)];
	result = write_when(request.when, when_ns);
	if (result == 0)
		result = mailbox_ask(&relay_shard_of(relay, request.id)->mailbox, &request);
	if (result == 0 && ret_id)
		memmove(ret_id, request.id, strlen(request.id) + 1);
	return result;
}

int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id)
{
	CANCELLATION_HELD;
	struct request request = { .kind = REQUEST_CANCEL, .id = id };
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	return is_id(id) ? mailbox_ask(&relay_shard_of(relay, request.id)->mailbox, &request)
	                 : -EINVAL;
}

int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                        uint32_t flags)
{
	CANCELLATION_HELD;
	struct request request = {
		.kind = REQUEST_MOVE,
		.id = id,
		.flags = flags & TIMERHUB_ABSOLUTE ? "a" : "",
	};
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!is_id(id) || (flags & ~TIMERHUB_ABSOLUTE) != 0)
		return -EINVAL;
	result = write_when(request.when, when_ns);
	return result == 0 ? mailbox_ask(&relay_shard_of(relay, request.id)->mailbox, &request)
	                   : result;
}

/* Free the delivery of a task and the task's data. Returns false if the delivery is unknown. */
static bool let_go(struct timerhub_relay *relay, const struct timerhub_relay_task *task)
{
	bool known;

	lock_take(&relay->shared.lock);
	known = deliveries_drop(&relay->shared.deliveries, task->delivery, task->id);
	lock_give(&relay->shared.lock);
	return known;
}

static bool is_delivery(const struct timerhub_relay_task *task)
{
	return task && is_id(task->id) && task->delivery[0] &&
	       strnlen(task->delivery, TIMERHUB_RELAY_DELIVERY_BYTES) <
	               TIMERHUB_RELAY_DELIVERY_BYTES;
}

int timerhub_relay_done(struct timerhub_relay *relay, const struct timerhub_relay_task *task)
{
	CANCELLATION_HELD;
	struct request request = {
		.kind = REQUEST_DONE,
		.id = task ? task->id : NULL,
		.delivery = task ? task->delivery : NULL,
	};
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!is_delivery(task))
		return -EINVAL;
	result = mailbox_ask(&relay_shard_of(relay, request.id)->mailbox, &request);
	if (result == 0 || result == -ENOENT || result == -ESTALE)
		(void)let_go(relay, task);
	return result;
}

int timerhub_relay_retry(struct timerhub_relay *relay, const struct timerhub_relay_task *task,
                         uint64_t delay_ns)
{
	CANCELLATION_HELD;
	struct request request = {
		.kind = REQUEST_RETRY,
		.id = task ? task->id : NULL,
		.delivery = task ? task->delivery : NULL,
	};
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!is_delivery(task))
		return -EINVAL;
	result = write_when(request.when, delay_ns);
	if (result == 0)
		result = mailbox_ask(&relay_shard_of(relay, request.id)->mailbox, &request);
	if (result == 0 || result == -ENOENT || result == -ESTALE)
		(void)let_go(relay, task);
	return result;
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
	return let_go(relay, task) ? 0 : -ENOENT;
}
