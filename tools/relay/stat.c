/* SPDX-License-Identifier: MIT */
/* Reads the reply of a queue's function stat, in which names and values follow a result. */
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum status ask_stat(struct call *call, uint32_t shard, const char *queue, struct reply **ret_reply)
{
	enum status status = reach(call, shard, NEEDS_QUEUE, queue);

	if (status != GOOD)
		return status;
	begin(call, "stat", STAT_KEYS, (const char *const[]){ NULL });
	return ask_reply(call, queue, ret_reply);
}

const char *stat_value(const struct reply *reply, const char *name)
{
	const char *its, *value;

	for (size_t at = 0; stat_next(reply, &at, &its, &value);)
		if (strcmp(its, name) == 0)
			return value;
	return NULL;
}

bool stat_next(const struct reply *reply, size_t *at, const char **ret_name, const char **ret_value)
{
	if (*at + 2 >= reply_count(reply))
		return false;
	*ret_name = reply_text(reply_at(reply, *at + 1));
	*ret_value = reply_text(reply_at(reply, *at + 2));
	*at += 2;
	return true;
}

const char *stat_relay(const char *name, const char *value, uint64_t ret_numbers[RELAY_NUMBERS])
{
	char *end = (char *)(uintptr_t)value;

	if (strncmp(name, "relay:", 6) != 0)
		return NULL;
	for (unsigned i = 0; i < RELAY_NUMBERS; i++)
		ret_numbers[i] = strtoull(end, &end, 10);
	return name + 6;
}

void stat_add_late(const char *name, const char *value, uint64_t *buckets, unsigned count)
{
	unsigned long bucket = count;

	if (strncmp(name, "late:", 5) == 0)
		bucket = strtoul(name + 5, NULL, 10);
	if (bucket < count)
		buckets[bucket] += strtoull(value, NULL, 10);
}
