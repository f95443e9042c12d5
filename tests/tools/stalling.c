/* SPDX-License-Identifier: MIT */
/*
 * A program with a hub and loops that stalls when it is told to. It reads commands, one a line, and
 * answers each when the stall is over with the CPU time in ns that the stalled thread has used.
 *
 *   KIND MS [WHERE]
 *
 * KIND is one of the planted faults:
 *   callback_computes  a callback computes for MS
 *   callback_blocks    a callback sleeps in nanosleep() for MS
 *   handler_computes   the loop's own handler computes, outside any callback
 *   handler_blocks     the loop's own handler sleeps in nanosleep()
 *   no_cpu             the thread could run, but other threads take its CPU (not for `loop`)
 *   no_consumer        an event waits for MS in a queue from which nobody takes
 *   exec               the program starts anew, and prints "ready" again
 * WHERE is `queue`, `loop` (a loop without a hub) or `both` (a loop on the hub). Before it reads
 * commands it prints "ready".
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_loop.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum { PLACES = 3, HOGS = 40 };
static const char *const place_names[PLACES] = { "queue", "loop", "both" };

/* A thread with a queue or a loop, which takes orders through a pipe as it would serve a socket. */
struct place {
	struct timerhub_queue *queue;
	struct timerhub_loop *loop;
	struct timerhub_timeout timeout;
	int orders[2], answers[2];
	pthread_t thread;
};

struct order {
	char kind[32];
	uint64_t ns;
};

static struct timerhub *hub;
static struct order current;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "stalling: %s\n", what);
	exit(EXIT_FAILURE);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static void compute(void)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + current.ns;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		;
}

static void block(void)
{
	struct timespec time = { .tv_sec = (time_t)(current.ns / (1000 * MS)),
		                 .tv_nsec = (long)(current.ns % (1000 * MS)) };

	while (nanosleep(&time, &time) != 0)
		;
}

/* ---- callbacks, whose names the test expects ---- */

static void callback_computes(const struct timerhub_event *event)
{
	(void)event;
	compute();
}

static void callback_blocks(const struct timerhub_event *event)
{
	(void)event;
	block();
}

static void quick_callback(const struct timerhub_event *event)
{
	(void)event;
}

static void timeout_computes(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop, (void)timeout;
	compute();
}

static void timeout_blocks(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop, (void)timeout;
	block();
}

static void quick_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop, (void)timeout;
}

/* ---- what an order does on the thread of its place ---- */

static timerhub_fn *fn_of(const char *kind)
{
	if (strcmp(kind, "callback_computes") == 0)
		return callback_computes;
	return strcmp(kind, "callback_blocks") == 0 ? callback_blocks : quick_callback;
}

static timerhub_timeout_fn *timeout_fn_of(const char *kind)
{
	if (strcmp(kind, "callback_computes") == 0)
		return timeout_computes;
	return strcmp(kind, "callback_blocks") == 0 ? timeout_blocks : quick_timeout;
}

/* Makes something due in a millisecond, beside the callback that is to stall if there is one. */
static void make_due(struct place *place)
{
	if (place->queue) {
		must(timerhub_call(place->queue, MS, fn_of(current.kind), NULL, NULL) == 0 &&
		             timerhub_call(place->queue, MS, quick_callback, NULL, NULL) == 0,
		     "call");
		return;
	}
	(void)timerhub_timeout_remove(place->loop, &place->timeout);
	must(timerhub_timeout_add(place->loop, &place->timeout, timeout_fn_of(current.kind)) == 0 &&
	             timerhub_timeout_set(place->loop, &place->timeout, MS) == 0,
	     "timeout");
}

static void turn(struct place *place)
{
	if (place->loop)
		must(timerhub_loop_turn(place->loop) >= 0, "turn");
	else
		must(timerhub_dispatch(place->queue, 64) >= 0, "dispatch");
}

/* Carries out the order: it is over when nothing is due any more. */
static void stall(struct place *place)
{
	uint64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + current.ns;
	char text[32];
	int length;

	make_due(place);
	turn(place); /* so that the loop knows that it will be due */
	if (strcmp(current.kind, "handler_computes") == 0)
		compute();
	else if (strcmp(current.kind, "handler_blocks") == 0)
		block();
	do {
		struct pollfd wait = { .fd = place->loop ? timerhub_loop_fd(place->loop)
			                                 : timerhub_queue_fd(place->queue),
			               .events = POLLIN };

		(void)poll(&wait, 1, 5);
		turn(place);
	} while (clock_ns(CLOCK_MONOTONIC) < end_ns);
	length = snprintf(text, sizeof(text), "%" PRIu64 "\n",
	                  clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
	must(write(place->answers[1], text, (size_t)length) == length, "answer");
}

static void *serve(void *of)
{
	struct place *place = of;
	char order;

	for (;;) {
		struct pollfd waits[2] = {
			{ .fd = place->orders[0], .events = POLLIN },
			{ .fd = place->loop ? timerhub_loop_fd(place->loop)
			                    : timerhub_queue_fd(place->queue),
			  .events = POLLIN },
		};

		turn(place);
		must(poll(waits, 2, -1) > 0, "poll");
		if (waits[0].revents == 0)
			continue;
		if (read(place->orders[0], &order, 1) != 1)
			return NULL;
		stall(place);
	}
}

/* ---- the main thread ---- */

static void open_place(struct place *place, unsigned index)
{
	const struct timerhub_loop_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_LOOP_OBSERVABLE,
	};

	must(pipe(place->orders) == 0 && pipe(place->answers) == 0, "pipe");
	if (index == 0)
		must(timerhub_queue_open(hub, &place->queue, NULL) == 0, "queue");
	else
		must(timerhub_loop_open(&place->loop, index == 2 ? hub : NULL, &config) == 0,
		     "loop");
	if (index == 2)
		place->queue = timerhub_loop_queue(place->loop);
	must(pthread_create(&place->thread, NULL, serve, place) == 0, "thread");
	(void)pthread_setname_np(place->thread, place_names[index]);
}

/* Lets an event wait that nobody takes, and takes it at last. */
static void leave_alone(struct timerhub_queue *queue)
{
	struct timerhub_event event;

	must(timerhub_after(queue, MS, 0, NULL) == 0, "after");
	block();
	while (timerhub_drain(queue, &event, 1) != 1)
		;
	(void)puts("0");
}

/* Lets a thread run on this CPU only, and there after all others. */
static void set_rank(pthread_t thread, const cpu_set_t *cpus, int policy)
{
	struct sched_param parameters = { .sched_priority = 0 };

	must(pthread_setaffinity_np(thread, sizeof(*cpus), cpus) == 0 &&
	             pthread_setschedparam(thread, policy, &parameters) == 0,
	     "affinity");
}

static void *hog(void *of)
{
	(void)of;
	compute();
	return NULL;
}

/* Keeps a thread from its CPU while events become due for it. */
static void starve(struct place *place)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + current.ns;
	const struct timespec step = { .tv_nsec = (long)(20 * MS) };
	cpu_set_t all, one;
	pthread_t hogs[HOGS];
	int cpu = 0;

	must(sched_getaffinity(0, sizeof(all), &all) == 0, "affinity");
	while (!CPU_ISSET((size_t)cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	set_rank(place->thread, &one, SCHED_IDLE);
	for (unsigned i = 0; i < HOGS; i++) {
		must(pthread_create(&hogs[i], NULL, hog, NULL) == 0, "hog");
		set_rank(hogs[i], &one, SCHED_OTHER);
	}
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		must(timerhub_call(place->queue, MS, quick_callback, NULL, NULL) == 0, "call");
		(void)nanosleep(&step, NULL);
	}
	for (unsigned i = 0; i < HOGS; i++)
		(void)pthread_join(hogs[i], NULL);
	set_rank(place->thread, &all, SCHED_OTHER);
	(void)puts("0");
}

static void begin_anew(void)
{
	char *const arguments[] = { (char[]){ "stalling" }, NULL };

	(void)execv("/proc/self/exe", arguments);
	must(false, "exec");
}

int main(void)
{
	static struct place places[PLACES];
	const struct timerhub_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_OBSERVABLE,
		.thread_name = "owner",
	};
	struct timerhub_queue *lonely;
	char line[256], where[32], answer[64];
	uint64_t ms;

	must(timerhub_open(&hub, &config) == 0 && timerhub_queue_open(hub, &lonely, NULL) == 0,
	     "open");
	for (unsigned i = 0; i < PLACES; i++)
		open_place(&places[i], i);
	(void)puts("ready");
	for (;;) {
		struct place *place = &places[0];
		ssize_t length;

		(void)fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return EXIT_SUCCESS;
		where[0] = 0;
		must(sscanf(line, "%31s %" SCNu64 " %31s", current.kind, &ms, where) >= 2, "order");
		current.ns = ms * MS;
		for (unsigned i = 0; i < PLACES; i++)
			if (strcmp(where, place_names[i]) == 0)
				place = &places[i];
		if (strcmp(current.kind, "exec") == 0) {
			begin_anew();
		} else if (strcmp(current.kind, "no_consumer") == 0) {
			leave_alone(lonely);
			continue;
		} else if (strcmp(current.kind, "no_cpu") == 0) {
			starve(place);
			continue;
		}
		must(write(place->orders[1], "x", 1) == 1, "order");
		length = read(place->answers[0], answer, sizeof(answer));
		must(length > 0, "answer");
		(void)fwrite(answer, 1, (size_t)length, stdout);
	}
}
