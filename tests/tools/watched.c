/* SPDX-License-Identifier: MIT */
/*
 * The process that timerhub-top observes in its tests. It reads commands from standard input, one
 * in each line, and answers each with a line. Hubs and queues are numbered from 0, in the order in
 * which they are opened.
 *
 *   hub THREAD_NAME FLAGS TIMERS_MAX    -> ok
 *   queue HUB                           -> ok
 *   arm HUB QUEUE DELAY_NS COUNT        -> ok
 *   rearm HUB DELAY_NS COUNT            -> how many of the timers armed last were moved
 *   cancel HUB COUNT                    -> how many of the timers armed last were cancelled
 *   advance HUB NOW_NS                  -> ok
 *   drain HUB QUEUE COUNT               -> how many events came at once
 *   wait HUB QUEUE COUNT                -> that many events have come
 *   fork HUB QUEUE                      -> the child's pid, see fork_inside()
 *   stats HUB                           -> timerhub_stats() as JSON
 *   loop DELAY_NS COUNT                 -> how many of COUNT timeouts expired in the turns
 *   close_queue HUB QUEUE, close HUB    -> ok
 *
 * With the argument `places` it has a hub and loops from the beginning, prints "ready", and stalls
 * as it is told. It answers when the stall is over, with the CPU time in ns that the stalled thread
 * has used.
 *
 *   KIND MS [WHERE [seen]]
 *
 * KIND is one of the planted faults:
 *   callback_computes  a callback computes for MS
 *   callback_blocks    a callback sleeps in nanosleep() for MS
 *   handler_computes   the loop's own handler computes, outside any callback
 *   handler_blocks     the loop's own handler sleeps in nanosleep()
 *   no_cpu             the thread could run, but other threads take its CPU (not for `loop`)
 *   no_consumer        an event waits for MS in a queue from which nobody takes
 *   exec               the program starts anew, and prints "ready" again
 * WHERE is `queue`, `loop` (a loop without a hub) or `both` (a loop on the hub). With `seen` the
 * stall goes on until the test sends SIGUSR1, because whoever is to see it may stand still for MS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_loop.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum { HUBS_MAX = 300, QUEUES_MAX = 100, TIMERS_MAX = 20000 };

struct hub {
	struct timerhub *hub;
	struct timerhub_queue *queues[QUEUES_MAX];
	unsigned queue_count;
	timerhub_timer timers[TIMERS_MAX];
	unsigned timer_count;
};

static struct hub hubs[HUBS_MAX];
static unsigned hub_count;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "watched: %s\n", what);
	exit(EXIT_FAILURE);
}

static void answer(uint64_t value)
{
	printf("%" PRIu64 "\n", value);
}

static void answer_ok(int result)
{
	if (result < 0)
		printf("%s\n", strerror(-result));
	else
		puts("ok");
}

static struct hub *hub_at(uint64_t index)
{
	must(index < hub_count, "no such hub");
	return &hubs[index];
}

static struct timerhub_queue *queue_at(const struct hub *hub, uint64_t index)
{
	must(index < hub->queue_count, "no such queue");
	return hub->queues[index];
}

static void open_hub(const char *name, uint64_t flags, uint64_t timers_max)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.flags = (uint32_t)flags,
		.timers_max = (uint32_t)timers_max,
		.thread_name = name,
	};
	int result;

	must(hub_count < HUBS_MAX, "too many hubs");
	result = timerhub_open(&hubs[hub_count].hub, &config);
	hub_count += result == 0;
	answer_ok(result);
}

static void open_queue(struct hub *hub)
{
	int result = timerhub_queue_open(hub->hub, &hub->queues[hub->queue_count], NULL);

	hub->queue_count += result == 0;
	answer_ok(result);
}

static void arm(struct hub *hub, struct timerhub_queue *queue, uint64_t delay_ns, uint64_t count)
{
	int result = 0;

	must(hub->timer_count + count <= TIMERS_MAX, "too many timers");
	for (uint64_t i = 0; i < count && result == 0; i++)
		result = timerhub_after(queue, delay_ns, i, &hub->timers[hub->timer_count++]);
	answer_ok(result);
}

static void quick_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop, (void)timeout;
}

/* Makes calls of a loop that belongs to another thread. */
static void *use_wrongly(void *of)
{
	struct timerhub_loop *loop = of;

	must(timerhub_loop_turn(loop) == -EPERM && timerhub_loop_settle(loop, NULL) == -EPERM,
	     "a loop of another thread");
	return NULL;
}

/* Opens an observable loop, which stays open, and lets its timeouts expire in virtual time. */
static void open_loop(uint64_t delay_ns, uint64_t count)
{
	static struct timerhub_timeout timeouts[TIMERS_MAX];
	const struct timerhub_loop_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_LOOP_MANUAL | TIMERHUB_LOOP_OBSERVABLE,
		.timeouts_max = TIMERS_MAX,
	};
	struct timerhub_loop *loop;
	pthread_t thread;
	uint64_t expired = 0;
	int result;

	must(count <= TIMERS_MAX && timerhub_loop_open(&loop, NULL, &config) == 0, "loop");
	for (uint64_t i = 0; i < count; i++)
		must(timerhub_timeout_add(loop, &timeouts[i], quick_timeout) == 0 &&
		             timerhub_timeout_set(loop, &timeouts[i], delay_ns) == 0,
		     "timeout");
	must(timerhub_loop_turn(loop) == 0 && timerhub_loop_advance(loop, 2 * delay_ns) == 0,
	     "turn");
	must(pthread_create(&thread, NULL, use_wrongly, loop) == 0 &&
	             pthread_join(thread, NULL) == 0,
	     "thread");
	while ((result = timerhub_loop_turn(loop)) > 0)
		expired += (uint64_t)result;
	answer(expired);
}

static void rearm(struct hub *hub, uint64_t delay_ns, uint64_t count)
{
	uint64_t moved = 0;

	for (unsigned i = 0; i < count; i++)
		moved += timerhub_rearm(hub->hub, hub->timers[hub->timer_count - 1 - i], delay_ns,
		                        0) == 0;
	answer(moved);
}

static void cancel(struct hub *hub, uint64_t count)
{
	uint64_t cancelled = 0;

	while (count-- > 0)
		cancelled += timerhub_cancel(hub->hub, hub->timers[--hub->timer_count]) == 0;
	answer(cancelled);
}

static uint64_t drain(struct timerhub_queue *queue, uint64_t count)
{
	struct timerhub_event event;
	uint64_t drained = 0;

	while (drained < count && timerhub_drain(queue, &event, 1) == 1)
		drained++;
	return drained;
}

static void wait_for(struct timerhub_queue *queue, uint64_t count)
{
	struct timerhub_event event;

	for (; count > 0; count--)
		must(timerhub_wait(queue, &event, 1, UINT64_MAX) == 1, "wait");
	puts("ok");
}

static pid_t forked = -1;

static void fork_once(const struct timerhub_event *event)
{
	(void)event;
	if (forked == -1)
		forked = fork();
}

/*
 * Arms three timers of a manual hub, all with the same deadline. Dispatches the three timers, and
 * forks in the first callback. Parent and child both finish the dispatch. The child then sleeps
 * until it is killed.
 */
static void fork_inside(const struct hub *hub, struct timerhub_queue *queue)
{
	struct timerhub_spec spec = { .size = sizeof(spec), .fn = fork_once };
	char byte = 0;
	int pipe_fds[2];

	must(pipe(pipe_fds) == 0, "pipe");
	for (unsigned i = 0; i < 3; i++)
		must(timerhub_arm(queue, &spec, NULL) == 0, "arm");
	must(timerhub_advance(hub->hub, timerhub_now(hub->hub), NULL) == 0, "advance");
	must(timerhub_dispatch(queue, 3) > 0, "dispatch");
	if (forked == 0) {
		must(write(pipe_fds[1], &byte, 1) == 1, "write");
		for (;;)
			(void)pause();
	}
	must(read(pipe_fds[0], &byte, 1) == 1, "read");
	answer((uint64_t)forked);
}

static void print_stats(const struct hub *hub)
{
	struct timerhub_stats stats;

	must(timerhub_stats(hub->hub, &stats) == 0, "stats");
#define FIELD(name) printf("\"" #name "\":%" PRIu64 ",", stats.name)
	putchar('{');
	FIELD(armed);
	FIELD(refiled);
	FIELD(cancelled);
	FIELD(expired);
	FIELD(delivered);
	FIELD(overruns);
	FIELD(live);
	FIELD(live_max);
	FIELD(inbox_max);
	FIELD(owner_wakeups);
	FIELD(submit_wakes);
	FIELD(queue_signals);
	FIELD(cascaded);
	FIELD(clock_jumps);
	FIELD(slow_callbacks);
	FIELD(slow_sum_ns);
#undef FIELD
	printf("\"sleeper\":%" PRIu32 ",\"lateness\":[", stats.sleeper);
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		printf("%s%" PRIu64, i > 0 ? "," : "", stats.lateness[i]);
	printf("],\"delivery_lateness\":[");
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		printf("%s%" PRIu64, i > 0 ? "," : "", stats.delivery_lateness[i]);
	puts("]}");
}

static void close_queue(struct hub *hub, uint64_t index)
{
	timerhub_queue_close(queue_at(hub, index));
	hub->queues[index] = NULL;
	puts("ok");
}

static void close_hub(struct hub *hub)
{
	timerhub_close(hub->hub);
	hub->hub = NULL;
	puts("ok");
}

static void obey(const char *verb, const uint64_t *numbers)
{
	struct hub *hub = hub_at(numbers[0]);

	if (strcmp(verb, "queue") == 0)
		open_queue(hub);
	else if (strcmp(verb, "arm") == 0)
		arm(hub, queue_at(hub, numbers[1]), numbers[2], numbers[3]);
	else if (strcmp(verb, "rearm") == 0)
		rearm(hub, numbers[1], numbers[2]);
	else if (strcmp(verb, "cancel") == 0)
		cancel(hub, numbers[1]);
	else if (strcmp(verb, "advance") == 0)
		answer_ok(timerhub_advance(hub->hub, numbers[1], NULL));
	else if (strcmp(verb, "drain") == 0)
		answer(drain(queue_at(hub, numbers[1]), numbers[2]));
	else if (strcmp(verb, "wait") == 0)
		wait_for(queue_at(hub, numbers[1]), numbers[2]);
	else if (strcmp(verb, "fork") == 0)
		fork_inside(hub, queue_at(hub, numbers[1]));
	else if (strcmp(verb, "stats") == 0)
		print_stats(hub);
	else if (strcmp(verb, "close_queue") == 0)
		close_queue(hub, numbers[1]);
	else if (strcmp(verb, "close") == 0)
		close_hub(hub);
	else
		must(false, "no such command");
}

/* ---- stalls ---- */

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
	bool has_end; /* when ns have passed; else SIGUSR1 must be pending too */
};

static struct timerhub *hub;
static struct order current;
static sigset_t end_of_order;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static bool goes_on(uint64_t end_ns)
{
	sigset_t pending;

	must(sigpending(&pending) == 0, "sigpending");
	return clock_ns(CLOCK_MONOTONIC) < end_ns ||
	       !(current.has_end || sigismember(&pending, SIGUSR1));
}

static void compute(void)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + current.ns;

	while (goes_on(end_ns))
		;
}

static void block(void)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + current.ns;
	struct timespec time = { .tv_sec = (time_t)(current.ns / (1000 * MS)),
		                 .tv_nsec = (long)(current.ns % (1000 * MS)) };

	do
		(void)nanosleep(&time, NULL);
	while (goes_on(end_ns));
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

/* Sets a thread's CPUs and policy. With SCHED_IDLE it runs only when no other thread can. */
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
	while (goes_on(end_ns)) {
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
	char *const arguments[] = { (char[]){ "watched" }, (char[]){ "places" }, NULL };

	(void)execv("/proc/self/exe", arguments);
	must(false, "exec");
}

/* Opens a hub, starts a thread for each WHERE, and stalls them as standard input says. */
static void stall_as_told(void)
{
	static struct place places[PLACES];
	const struct timerhub_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_OBSERVABLE,
		.thread_name = "owner",
	};
	struct timerhub_queue *lonely;
	char line[256], where[32], answer[64], until[8];
	uint64_t ms;
	int number;

	must(sigemptyset(&end_of_order) == 0 && sigaddset(&end_of_order, SIGUSR1) == 0 &&
	             sigprocmask(SIG_BLOCK, &end_of_order, NULL) == 0,
	     "signal");
	must(timerhub_open(&hub, &config) == 0 && timerhub_queue_open(hub, &lonely, NULL) == 0,
	     "open");
	for (unsigned i = 0; i < PLACES; i++)
		open_place(&places[i], i);
	(void)puts("ready");
	while (fflush(stdout) == 0 && fgets(line, sizeof(line), stdin)) {
		struct place *place = &places[0];
		ssize_t length;

		where[0] = 0;
		number = sscanf(line, "%31s %" SCNu64 " %31s %7s", current.kind, &ms, where, until);
		must(number >= 2, "order");
		current.ns = ms * MS;
		current.has_end = number < 4;
		for (unsigned i = 0; i < PLACES; i++)
			if (strcmp(where, place_names[i]) == 0)
				place = &places[i];
		if (strcmp(current.kind, "exec") == 0)
			begin_anew();
		if (strcmp(current.kind, "no_consumer") == 0) {
			leave_alone(lonely);
		} else if (strcmp(current.kind, "no_cpu") == 0) {
			starve(place);
		} else {
			must(write(place->orders[1], "x", 1) == 1, "order");
			length = read(place->answers[0], answer, sizeof(answer));
			must(length > 0, "answer");
			(void)fwrite(answer, 1, (size_t)length, stdout);
		}
		if (!current.has_end)
			must(sigwait(&end_of_order, &number) == 0, "sigwait");
	}
}

int main(int argc, char **argv)
{
	char line[256];

	(void)argv;
	if (argc > 1) {
		stall_as_told();
		return EXIT_SUCCESS;
	}

	while (fgets(line, sizeof(line), stdin)) {
		char verb[32], name[64];
		uint64_t numbers[4] = { 0 };

		if (sscanf(line, "hub %63s %" SCNu64 " %" SCNu64, name, &numbers[0], &numbers[1]) ==
		    3) {
			open_hub(name, numbers[0], numbers[1]);
		} else if (sscanf(line, "loop %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1]) ==
		           2) {
			open_loop(numbers[0], numbers[1]);
		} else {
			must(sscanf(line, "%31s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, verb,
			            &numbers[0], &numbers[1], &numbers[2], &numbers[3]) >= 2,
			     "no command");
			obey(verb, numbers);
		}
		(void)fflush(stdout);
	}
	return EXIT_SUCCESS;
}
