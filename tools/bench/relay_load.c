/* SPDX-License-Identifier: MIT */
/*
 * Loads a relay's queue through the library. tools/run-bench runs it beside bullmq.js, which loads
 * BullMQ in the same ways.
 *
 * Usage: relay_load QUEUE put CALLERS COUNT      tasks a second that so many threads put
 *        relay_load QUEUE put_many BATCH COUNT   the same by one thread, so many in one call
 *        relay_load QUEUE submit WINDOW COUNT    the same by one thread that does not wait
 *        relay_load QUEUE take WORKERS COUNT     puts tasks that are due, then prints how many a
 *                                                second so many threads take and end
 *        relay_load QUEUE late WORKERS COUNT RATE MIN_MS SPAN_MS
 *            puts RATE tasks a second, each due in MIN_MS to MIN_MS + SPAN_MS, and prints by how
 *            many us each was late when a worker had it
 *
 * The environment variable REDIS_URL names the server.
 */
#include "base/clock.h"
#include "randoms.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_relay.h>

#define MANY_MAX 1024
#define HOUR_NS (3600 * NS_PER_S)

static const char data[16] = "a task's payload";

static struct timerhub_relay *relay;
static unsigned threads, count;
static uint64_t delay_ns = HOUR_NS;
static _Atomic unsigned next; /* number of tasks that a thread has begun to put or take */
static int64_t *late_us;      /* of each task that was taken */

static void must(int result, const char *call)
{
	if (result >= 0)
		return;
	fprintf(stderr, "relay_load: %s: %s\n", call, strerror(-result));
	exit(1);
}

/* Relaxed: the threads only share out numbers by it. */
static unsigned take_number(void)
{
	return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
}

static void *put_tasks(void *unused)
{
	(void)unused;
	while (take_number() < count)
		must(timerhub_relay_put(relay, NULL, delay_ns, 0, data, sizeof(data), NULL), "put");
	return NULL;
}

static void *take_tasks(void *unused)
{
	struct timerhub_relay_task task;
	unsigned number;

	(void)unused;
	while ((number = take_number()) < count) {
		int result = timerhub_relay_take(relay, &task, UINT64_MAX);

		must(result, "take");
		late_us[number] =
			((int64_t)clock_read_ns(CLOCK_REALTIME) - (int64_t)task.due_ns) / 1000;
		must(timerhub_relay_done(relay, &task), "done");
	}
	return NULL;
}

static void begin(pthread_t *ids, void *(*work)(void *))
{
	next = 0;
	for (unsigned i = 0; i < threads; i++)
		must(-pthread_create(&ids[i], NULL, work, NULL), "pthread_create");
}

static void end(pthread_t *ids)
{
	for (unsigned i = 0; i < threads; i++)
		must(-pthread_join(ids[i], NULL), "pthread_join");
}

static void put_many(struct timerhub_relay_change *changes)
{
	for (unsigned put = 0; put < count;) {
		int done = timerhub_relay_put_many(relay, changes,
		                                   count - put < threads ? count - put : threads);

		must(done > 0 ? 0 : done < 0 ? done : changes[0].result, "put_many");
		put += (unsigned)done;
	}
}

static void submit(struct timerhub_relay_change *changes)
{
	struct timerhub_relay_completion completions[MANY_MAX];
	struct pollfd ready = { .fd = timerhub_relay_completion_fd(relay), .events = POLLIN };
	unsigned begun = 0, ended = 0;

	must(ready.fd, "completion_fd");
	while (ended < count) {
		unsigned more = threads - (begun - ended);
		int taken;

		more = more < count - begun ? more : count - begun;
		if (more > 0)
			must(timerhub_relay_submit(relay, changes, more, 0), "submit");
		begun += more;
		(void)poll(&ready, 1, -1);
		taken = timerhub_relay_completions(relay, completions, MANY_MAX);
		must(taken, "completions");
		for (int i = 0; i < taken; i++)
			must(completions[i].result, "a submitted put");
		ended += (unsigned)taken;
	}
}

static void put_at_rate(uint64_t rate, uint64_t min_ms, uint64_t span_ms)
{
	struct randoms randoms = randoms_from(1);
	uint64_t begin_ns = clock_monotonic_ns();
	struct timespec deadline;

	for (unsigned i = 0; i < count; i++) {
		uint64_t after_ms = randoms_between(&randoms, min_ms, min_ms + span_ms);

		deadline = timespec_of(begin_ns + i * NS_PER_S / rate);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) != 0) {
		}
		must(timerhub_relay_put(relay, NULL, after_ms * NS_PER_MS, 0, data, sizeof(data),
		                        NULL),
		     "put");
	}
}

int main(int words, char **word)
{
	static struct timerhub_relay_change changes[MANY_MAX];
	struct timerhub_relay_config config = { .size = sizeof(config),
		                                .flags = TIMERHUB_RELAY_NO_SERVE,
		                                .redis = getenv("REDIS_URL"),
		                                .timeout_ns = 30 * NS_PER_S };
	pthread_t ids[MANY_MAX];
	const char *mode = words < 5 ? "" : word[2];
	uint64_t begin_ns;

	threads = words < 5 ? 0 : (unsigned)atoi(word[3]);
	count = words < 5 ? 0 : (unsigned)atoi(word[4]);
	if (threads == 0 || threads > MANY_MAX || words != (strcmp(mode, "late") == 0 ? 8 : 5)) {
		fputs("usage: relay_load QUEUE put|put_many|submit|take|late N COUNT ...\n",
		      stderr);
		return 2;
	}
	late_us = calloc(count, sizeof(*late_us));
	must(late_us ? 0 : -ENOMEM, "calloc");
	for (unsigned i = 0; i < MANY_MAX; i++)
		changes[i] = (struct timerhub_relay_change){ .op = TIMERHUB_RELAY_PUT,
			                                     .when_ns = delay_ns,
			                                     .data = data,
			                                     .data_len = sizeof(data) };
	must(timerhub_relay_open(&relay, word[1], &config), "open");
	if (strcmp(mode, "late") == 0) {
		begin(ids, take_tasks);
		put_at_rate((uint64_t)atoi(word[5]), (uint64_t)atoi(word[6]),
		            (uint64_t)atoi(word[7]));
		end(ids);
		for (unsigned i = 0; i < count; i++)
			printf("%s%" PRId64, i == 0 ? "[" : ", ", late_us[i]);
		puts("]");
		timerhub_relay_close(relay);
		return 0;
	}
	if (strcmp(mode, "take") == 0) {
		delay_ns = 0;
		begin(ids, put_tasks);
		end(ids);
	}
	begin_ns = clock_monotonic_ns();
	if (strcmp(mode, "put_many") == 0) {
		put_many(changes);
	} else if (strcmp(mode, "submit") == 0) {
		submit(changes);
	} else {
		begin(ids, strcmp(mode, "put") == 0 ? put_tasks : take_tasks);
		end(ids);
	}
	printf("%.0f\n", count * 1e9 / (double)(clock_monotonic_ns() - begin_ns));
	timerhub_relay_close(relay);
	return 0;
}
