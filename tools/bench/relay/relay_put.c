/* SPDX-License-Identifier: MIT */
/*
 * Puts tasks from many threads through one relay, and prints the number of puts a second. bench.py
 * runs this program.
 *
 * usage: relay_put URL QUEUE THREADS PUTS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <timerhub_relay.h>

#define HOUR_NS UINT64_C(3600000000000)
#define THREADS_MAX 1024u

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

	if (argc != 5 || (count = strtoul(argv[3], NULL, 10)) == 0 || count > THREADS_MAX)
		return 2;
	config.redis = argv[1];
	each = strtoul(argv[4], NULL, 10) / count;
	if (timerhub_relay_open(&relay, argv[2], &config) < 0)
		return 1;
	begin_s = now_s();
	for (unsigned long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, put, NULL) != 0)
			return 1;
	for (unsigned long i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	(void)printf("%.0f\n", (double)(each * count) / (now_s() - begin_s));
	timerhub_relay_close(relay);
	return failures > 0;
}
