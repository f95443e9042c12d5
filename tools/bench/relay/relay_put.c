/* SPDX-License-Identifier: MIT */
/*
 * Puts tasks through one relay, and prints the number of puts a second: from many threads, or from
 * one by put_many of 64 or by submit. bench.py runs this program.
 *
 * usage: relay_put URL QUEUE THREADS|many|submit PUTS
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_relay.h>

#define HOUR_NS UINT64_C(3600000000000)
#define THREADS_MAX 1024u
#define MANY 64u
#define SUBMITTED 256u /* at a time, while the completions of as many are on their way */

static struct timerhub_relay *relay;
static unsigned long each, failures;

static void *put(void *arg)
{
	(void)arg;
	for (unsigned long i = 0; i < each; i++)
		if (timerhub_relay_put(relay, NULL, HOUR_NS, 0, "data", 4, NULL) < 0)
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void put_many(void)
{
	static struct timerhub_relay_change changes[MANY];

	for (unsigned long done = 0; done < each; done += MANY) {
		for (unsigned i = 0; i < MANY; i++)
			changes[i] = (struct timerhub_relay_change){ .when_ns = HOUR_NS,
				                                     .data = "data",
				                                     .data_len = 4 };
		if (timerhub_relay_put_many(relay, changes, MANY) != (int)MANY)
			failures++;
	}
}

static void submit(void)
{
	static struct timerhub_relay_change changes[SUBMITTED];
	static struct timerhub_relay_completion done[SUBMITTED];
	struct pollfd event = { .fd = timerhub_relay_completion_fd(relay), .events = POLLIN };
	unsigned long begun = 0, ended = 0;

	for (unsigned i = 0; i < SUBMITTED; i++)
		changes[i] = (struct timerhub_relay_change){
			.op = TIMERHUB_RELAY_PUT, .when_ns = HOUR_NS, .data = "data", .data_len = 4
		};
	while (ended < each) {
		int got;

		while (begun < each && begun - ended <= SUBMITTED &&
		       timerhub_relay_submit(relay, changes, SUBMITTED, 0) == 0)
			begun += SUBMITTED;
		(void)poll(&event, 1, -1);
		got = timerhub_relay_completions(relay, done, SUBMITTED);
		for (int i = 0; i < got; i++)
			failures += done[i].result != 0;
		ended += got > 0 ? (unsigned long)got : 0;
	}
}

static double now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct timerhub_relay_config config = { .size = sizeof(config) };
	pthread_t threads[THREADS_MAX];
	unsigned long count;
	double begin_s;

	bool many = argc == 5 && strcmp(argv[3], "many") == 0;
	bool submits = argc == 5 && strcmp(argv[3], "submit") == 0;

	if (argc != 5)
		return 2;
	count = many || submits ? 1 : strtoul(argv[3], NULL, 10);
	if (count == 0 || count > THREADS_MAX)
		return 2;
	config.redis = argv[1];
	each = strtoul(argv[4], NULL, 10) / count;
	if (timerhub_relay_open(&relay, argv[2], &config) < 0)
		return 1;
	begin_s = now_s();
	if (many)
		put_many();
	if (submits)
		submit();
	for (unsigned long i = 0; i < count && !many && !submits; i++)
		if (pthread_create(&threads[i], NULL, put, NULL) != 0)
			return 1;
	for (unsigned long i = 0; i < count && !many && !submits; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("%.0f\n", (double)(each * count) / (now_s() - begin_s));
	timerhub_relay_close(relay);
	return failures > 0;
}
