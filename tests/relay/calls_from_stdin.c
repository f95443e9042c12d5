/* SPDX-License-Identifier: MIT */
/*
 * Makes calls of the relay's library. Tests that start and stop servers use this program. Each line
 * of standard input is a call and its arguments. Each line of output is the call's result and
 * outputs. The environment variable REDIS_URL names the server, and HORIZON_MS the horizon.
 *
 * open QUEUE SERVE TIMEOUT_MS REPLICAS | close | put ID MS DATA | replace ID MS DATA | cancel ID
 * put-pair ID ID MS | move ID MS | take MS | take-and-stop | fd | done | retry MS | touch | release
 * which | stats | check QUEUE
 *
 * `done`, `retry`, `touch` and `release` are calls for the task that was taken last, and `which`
 * prints its delivery and due time in ns. `put-pair` puts two tasks by one command, and prints both
 * results.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_relay.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define LINE_BYTES 16384
#define WORDS 5

static struct timerhub_relay *relay;
static struct timerhub_relay_task task;

static uint64_t ms(const char *text)
{
	return strtoull(text, NULL, 10) * MS;
}

static int open_queue(char **words)
{
	struct timerhub_relay_config config = {
		.size = sizeof(config),
		.flags = words[2][0] == '1' ? TIMERHUB_RELAY_SERVE : TIMERHUB_RELAY_NO_SERVE,
		.redis = getenv("REDIS_URL"),
		.timeout_ns = ms(words[3]),
		.replicas = (uint32_t)strtoul(words[4], NULL, 10),
		.horizon_ns = getenv("HORIZON_MS") ? ms(getenv("HORIZON_MS")) : 0,
	};

	return timerhub_relay_open(&relay, words[1], &config);
}

static int put_pair(char **words)
{
	struct timerhub_relay_change changes[2] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		changes[i].id = changes[i].data = words[1 + i];
		changes[i].data_len = strlen(words[1 + i]);
		changes[i].when_ns = ms(words[3]);
	}
	(void)timerhub_relay_put_many(relay, changes, 2);
	return printf("%d %d\n", changes[0].result, changes[1].result);
}

static int take(uint64_t timeout_ns)
{
	int result = timerhub_relay_take(relay, &task, timeout_ns);

	if (result == 1)
		(void)printf("1 %s %" PRIu64 " %.*s\n", task.id, task.attempts, (int)task.data_len,
		             (const char *)task.data);
	return result;
}

static void *take_now(void *ret_taken)
{
	*(int *)ret_taken = timerhub_relay_take(relay, &task, 0);
	return NULL;
}

/* What a take that does not wait returns if the relay is stopped meanwhile. */
static int take_and_stop(void)
{
	pthread_t taker;
	int taken = 0, result = -pthread_create(&taker, NULL, take_now, &taken);

	if (result < 0)
		return result;
	(void)usleep(100000);
	timerhub_relay_stop(relay);
	(void)pthread_join(taker, NULL);
	return taken;
}

static int stats(void)
{
	struct timerhub_relay_stats now;
	int result = timerhub_relay_stats(relay, &now);

	if (result == 0)
		(void)printf("0 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		             now.waiting, now.ready, now.taken, now.relays, now.put);
	return result;
}

static int check(const char *queue)
{
	struct timerhub_relay_report report;
	int result = timerhub_relay_check(getenv("REDIS_URL"), queue, &report);

	if (result == 0)
		(void)printf("0 %u %u %" PRIu64 " %" PRIu64 " %s\n", report.keeps, report.replicas,
		             report.tasks, report.placed, report.fault ? report.fault : "-");
	return result;
}

/*
 * Make the call of one line of input. Returns the result of the call. If the function has already
 * printed the result, `*ret_told` is set.
 */
static int call(char **words, int *ret_told)
{
	const char *name = words[0];

	*ret_told = strcmp(name, "stats") == 0 || strcmp(name, "check") == 0 ||
	            strcmp(name, "which") == 0 || strcmp(name, "put-pair") == 0;
	if (strcmp(name, "open") == 0)
		return open_queue(words);
	if (strcmp(name, "put") == 0 || strcmp(name, "replace") == 0)
		return timerhub_relay_put(relay, words[1], ms(words[2]),
		                          name[0] == 'r' ? TIMERHUB_RELAY_REPLACE : 0, words[3],
		                          strlen(words[3]), NULL);
	if (strcmp(name, "put-pair") == 0)
		return put_pair(words);
	if (strcmp(name, "cancel") == 0)
		return timerhub_relay_cancel(relay, words[1]);
	if (strcmp(name, "move") == 0)
		return timerhub_relay_move(relay, words[1], ms(words[2]), 0);
	if (strcmp(name, "done") == 0)
		return timerhub_relay_done(relay, &task);
	if (strcmp(name, "retry") == 0)
		return timerhub_relay_retry(relay, &task, ms(words[1]));
	if (strcmp(name, "touch") == 0)
		return timerhub_relay_touch(relay, &task);
	if (strcmp(name, "release") == 0)
		return timerhub_relay_release(relay, &task);
	if (strcmp(name, "which") == 0)
		return printf("%s %" PRIu64 "\n", task.delivery, task.due_ns);
	if (strcmp(name, "fd") == 0)
		return timerhub_relay_fd(relay) < 0 ? -EINVAL : 0;
	if (strcmp(name, "stats") == 0)
		return stats();
	if (strcmp(name, "check") == 0)
		return check(words[1]);
	if (strcmp(name, "take-and-stop") == 0)
		return take_and_stop();
	if (strcmp(name, "take") == 0) {
		int result = take(ms(words[1]));

		*ret_told = result == 1;
		return result;
	}
	timerhub_relay_close(relay);
	relay = NULL;
	return 0;
}

int main(void)
{
	char line[LINE_BYTES];

	while (fgets(line, sizeof(line), stdin)) {
		char *words[WORDS] = { "", "", "", "", "" };
		int result, told;

		for (int i = 0; i < WORDS; i++) {
			char *word = strtok(i == 0 ? line : NULL, " \n");

			if (!word)
				break;
			words[i] = word;
		}
		result = call(words, &told);
		if (!told || result < 0)
			(void)printf("%d\n", result);
		(void)fflush(stdout);
	}
	timerhub_relay_close(relay);
	return 0;
}
