/* SPDX-License-Identifier: MIT */
/*
 * The program "victim" uses a queue over a connection to Redis that fails once. The later
 * deliveries must agree with the results of the calls. If a call returns -ETIMEDOUT, the program
 * repeats the call.
 *
 * usage: relay_victim QUEUE
 *        relay_victim --serve QUEUE: serve the queue, with a horizon of HORIZON_MS, until killed
 *        relay_victim --make QUEUE: make the queue, and end
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_relay.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define TASKS 6
/*
 * Time within which each task must come. This time is far below the lease of 300 s. Therefore the
 * relay must ask again for a lost delivery. The relay detects a silent connection of takers after
 * 30 s.
 */
#define ARRIVES (60 * SEC)

static struct timerhub_relay *relay;
static unsigned done[TASKS];

static void expect(int condition, const char *what, const char *id, int result)
{
	if (condition)
		return;
	(void)fprintf(stderr, "%s %s: %d\n", what, id, result);
	exit(1);
}

static void put(const char *id, uint64_t delay_ns)
{
	int result;

	do
		result = timerhub_relay_put(relay, id, delay_ns, 0, id, strlen(id), NULL);
	while (result == -ETIMEDOUT);
	/* The result may be -EEXIST, because an earlier try of the call may have put the task. */
	expect(result == 0 || result == -EEXIST || result == -EALREADY, "put", id, result);
}

static void cancel(const char *id)
{
	int result = timerhub_relay_cancel(relay, id), first = result;

	while (result == -ETIMEDOUT)
		result = timerhub_relay_cancel(relay, id);
	expect(result == 0 || (first == -ETIMEDOUT && result == -ENOENT), "cancel", id, result);
}

static void move(const char *id, uint64_t delay_ns)
{
	int result;

	do
		result = timerhub_relay_move(relay, id, delay_ns, 0);
	while (result == -ETIMEDOUT);
	expect(result == 0, "move", id, result);
}

static void finish(const struct timerhub_relay_task *task)
{
	int result = timerhub_relay_done(relay, task), first = result;

	while (result == -ETIMEDOUT)
		result = timerhub_relay_done(relay, task);
	expect(result == 0 || (first == -ETIMEDOUT && result == -ENOENT), "done", task->id, result);
	done[task->id[0] - 'a']++;
}

static void give_back(const struct timerhub_relay_task *task)
{
	int result = timerhub_relay_retry(relay, task, 0), first = result;

	while (result == -ETIMEDOUT)
		result = timerhub_relay_retry(relay, task, 0);
	expect(result == 0 || (first == -ETIMEDOUT && result == -ESTALE) ||
	               (first == -ETIMEDOUT && result == -ENOENT),
	       "retry", task->id, result);
}

static void take_all(void)
{
	struct timerhub_relay_task task;
	unsigned left = TASKS - 1;
	int retried = 0;

	while (left > 0) {
		int result = timerhub_relay_take(relay, &task, ARRIVES);

		expect(result == 1, "take", "", result);
		expect(task.data_len == strlen(task.id) &&
		               memcmp(task.data, task.id, task.data_len) == 0,
		       "data of", task.id, 0);
		expect(strcmp(task.id, "c") != 0, "cancelled, and delivered:", task.id, 0);
		if (strcmp(task.id, "b") == 0 && !retried) {
			retried = 1;
			give_back(&task);
			continue;
		}
		finish(&task);
		left--;
	}
}

int main(int argc, char **argv)
{
	struct timerhub_relay_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_RELAY_SERVE,
		.redis = getenv("REDIS_URL"),
		.timeout_ns = SEC,
	};
	const char *horizon_ms = getenv("HORIZON_MS");
	struct timerhub_relay_stats stats;
	int result;

	if (argc < 2)
		return 2;
	if (horizon_ms)
		config.horizon_ns = strtoull(horizon_ms, NULL, 10) * MS;
	do
		result = timerhub_relay_open(&relay, argv[argc - 1], &config);
	while (result == -EHOSTUNREACH); /* this error is right if the connection is silent */
	expect(result == 0, "open", "", result);
	while (strcmp(argv[1], "--serve") == 0)
		(void)pause();
	if (strcmp(argv[1], "--make") == 0) {
		timerhub_relay_close(relay);
		return 0;
	}
	put("a", 0);
	put("c", 3600 * SEC);
	put("b", 20 * MS);
	put("d", 3600 * SEC);
	put("e", 10 * MS);
	cancel("c");
	move("d", 30 * MS);
	put("f", 25 * MS);
	take_all();
	for (unsigned i = 0; i < TASKS; i++)
		expect(done[i] == (i != 2), "times done:", (char[]){ (char)('a' + i), '\0' },
		       (int)done[i]);
	do
		result = timerhub_relay_stats(relay, &stats);
	while (result == -ETIMEDOUT);
	expect(result == 0 && stats.waiting == 0 && stats.ready == 0, "left", "", result);
	timerhub_relay_close(relay);
	return 0;
}
