/* SPDX-License-Identifier: MIT */
/*
 * The command drain, which waits until a queue has no tasks. It is for users who are about to stop
 * the last worker.
 */
#include <stdlib.h>
#include <time.h>

#include "tool.h"

#define INTERVAL_NS 250000000

/*
 * Counts the tasks of a queue on all its servers. If a server fails, the error is printed once, its
 * status is kept in `servers`, and it is not asked again.
 */
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

	for (;;) {
		status = count_tasks(call, words[0], servers, &tasks);
		if (status == REFUSED || tasks == 0)
			break;
		(void)nanosleep(&interval, NULL);
	}
	return status == GOOD ? say_done() : status;
}
