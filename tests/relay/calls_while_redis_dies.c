/* SPDX-License-Identifier: MIT */
/*
 * Threads put, cancel, take and finish tasks while a test kills the Redis server and starts it
 * again. The threads record the results of all calls. If the server loses no data, the effect of
 * each call that returned 0 must last. The program ends when its standard input ends.
 *
 * usage: relay_facts QUEUE
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_relay.h>

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define THREADS 4u
#define EACH 100000u

enum { NOT, SURE, IN_DOUBT };

/* The known state of a task. The thread that made the last call about the task writes the state. */
struct fact {
	uint8_t put;
	uint8_t ended; /* the task is done or cancelled */
};

static struct timerhub_relay *relay;
static struct fact facts[THREADS * EACH];
static unsigned counts[THREADS], stopping;

static uint8_t get(const uint8_t *byte)
{
	return __atomic_load_n(byte, __ATOMIC_ACQUIRE);
}

static void set(uint8_t *byte, uint8_t value)
{
	__atomic_store_n(byte, value, __ATOMIC_RELEASE);
}

static void expect(int condition, const char *what, unsigned number, int result)
{
	if (condition)
		return;
	(void)fprintf(stderr, "%s %u: %d\n", what, number, result);
	exit(1);
}

/*
 * Returns whether the result says that no usable connection came within the timeout, so that the
 * request was never sent.
 */
static int was_not_sent(int result)
{
	return result == -ECONNREFUSED || result == -EHOSTUNREACH || result == -EROFS;
}

static void put(unsigned number, uint64_t delay_ns)
{
	char id[16];
	int result;

	(void)snprintf(id, sizeof(id), "%u", number);
	set(&facts[number].put, IN_DOUBT); /* the task may be delivered before the put returns */
	result = timerhub_relay_put(relay, id, delay_ns, 0, &number, sizeof(number), NULL);
	/*
	 * No other thread puts this id. Therefore -EEXIST means that the relay has sent this put
	 * twice, and the first request has put the task.
	 */
	if (result == 0 || result == -EEXIST || result == -EALREADY)
		set(&facts[number].put, SURE);
	else if (was_not_sent(result))
		set(&facts[number].put, NOT);
	else
		expect(result == -ETIMEDOUT, "put", number, result);
}

static void cancel(unsigned number)
{
	char id[16];
	int result;

	(void)snprintf(id, sizeof(id), "%u", number);
	result = timerhub_relay_cancel(relay, id);
	if (result == 0)
		set(&facts[number].ended, SURE);
	else if (result == -ETIMEDOUT)
		set(&facts[number].ended, IN_DOUBT);
	else
		expect(result == -ENOENT || result == -EBUSY || was_not_sent(result), "cancel",
		       number, result);
}

static void finish(const struct timerhub_relay_task *task)
{
	int result, doubt = 0;
	unsigned number;

	memcpy(&number, task->data, sizeof(number));
	expect(get(&facts[number].ended) != SURE, "finished, and delivered:", number, 0);
	expect(get(&facts[number].put) != NOT, "not put, and delivered:", number, 0);
	do {
		result = timerhub_relay_done(relay, task);
		doubt |= result == -ETIMEDOUT;
	} while (result == -ETIMEDOUT || was_not_sent(result));
	expect(result == 0 || (doubt && result == -ENOENT), "done", number, result);
	set(&facts[number].ended, SURE);
}

static void *live(void *arg)
{
	unsigned thread = (unsigned)(uintptr_t)arg, seed = thread;
	struct timerhub_relay_task task;

	while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED) && counts[thread] < EACH) {
		unsigned number = thread * EACH + counts[thread]++;

		put(number, (unsigned)rand_r(&seed) % 30 * MS);
		if (rand_r(&seed) % 4 == 0)
			cancel(number);
		while (timerhub_relay_take(relay, &task, 2 * MS) == 1)
			finish(&task);
	}
	return NULL;
}

static void drain(void)
{
	struct timerhub_relay_task task;
	struct timerhub_relay_stats stats;

	for (;;) {
		while (timerhub_relay_take(relay, &task, 100 * MS) == 1)
			finish(&task);
		if (timerhub_relay_stats(relay, &stats) == 0 && stats.waiting + stats.ready == 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct timerhub_relay_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_RELAY_SERVE,
		.redis = getenv("REDIS_URL"),
		.timeout_ns = 10 * SEC,
	};
	struct timerhub_relay_stats stats;
	struct pollfd input = { .events = POLLIN };
	pthread_t threads[THREADS];
	unsigned total = 0;

	if (argc != 2 || timerhub_relay_open(&relay, argv[1], &config) < 0)
		return 2;
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, live, (void *)(uintptr_t)i) != 0)
			return 2;
	while (poll(&input, 1, -1) < 0)
		;
	__atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	drain();
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned j = 0; j < counts[i]; j++, total++) {
			const struct fact *fact = &facts[i * EACH + j];

			expect(fact->put != SURE || fact->ended != NOT,
			       "put, and lost:", i * EACH + j, 0);
		}
	if (timerhub_relay_stats(relay, &stats) == 0)
		(void)printf("%u tasks, %" PRIu64 " calls in doubt, %" PRIu64 " connections\n",
		             total, stats.in_doubt, stats.connects);
	timerhub_relay_close(relay);
	return 0;
}
