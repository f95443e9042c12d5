/* SPDX-License-Identifier: MIT */
/* The command `drain`, for users who are about to stop the last worker. */
#include <stdlib.h>
#include <time.h>

#include "tool.h"

#define INTERVAL_NS 250000000

/* A server that fails is named once and left out from then on; its status is kept. */
static enum status count_tasks(struct call *call, const char *queue, enum status *servers,
                               uint64_t *ret_tasks)
{
	enum status all = GOOD;
	const char *tasks;

	*ret_tasks = 0;
	for (uint32_t i = 0; i < call->shards; i++) {
		struct reply *reply;

		if (servers[i] == GOOD)
			servers[i] = ask_stat(call, i, queue, &reply);
		if (servers[i] == GOOD) {
			tasks = stat_value(reply, "tasks");
			*ret_tasks += tasks ? strtoull(tasks, NULL, 10) : 0;
			reply_free(reply);
		}
		all = worse(all, servers[i]);
	}
	return all;
}

enum status do_drain(struct call *call, char **words)
{
	static const struct timespec interval = { .tv_nsec = INTERVAL_NS };
	enum status servers[KEYS_SHARDS_MAX] = { GOOD }, status;
	uint64_t tasks;

	begin_array(call);
	for (;;) {
		status = count_tasks(call, words[0], servers, &tasks);
		if (status == REFUSED || tasks == 0)
			break;
		(void)nanosleep(&interval, NULL);
	}
	if (status == GOOD)
		(void)say_done();
	end_array();
	return status;
}
