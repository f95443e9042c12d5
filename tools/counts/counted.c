/* SPDX-License-Identifier: MIT */
/*
 * Makes calls of the library, so that count.py can count their instructions by callgrind.
 * Only the instructions inside the function counted() are counted. For each call of counted(),
 * callgrind writes a file.
 *
 * Each run executes the same instructions on every machine: the hub is manual, so it has no thread
 * and no clock, and the program replaces sysconf() and sched_getcpu(), because the number of
 * processors decides how many free stacks and inbox lanes a hub has, and the calling thread's
 * processor which slots its timers get.
 *
 * The functions inline_* have the inline functions of timerhub_loop.h. Their instructions are
 * counted too, although they are in this program and not in the library.
 *
 * Prints a line for each operation, in the order of the calls of counted(). The line has the
 * operation's name and the number of times that it was done.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "timerhub.h"
#include "timerhub_loop.h"

#define TIMERS 1024
#define ROOM (1u << 20)
#define BATCH 32
#define SECOND_NS 1000000000ull
#define STEP_NS 64000 /* distance between the deadlines of two neighbouring timers */

static struct timerhub *hub;
static struct timerhub_queue *queue;
static struct timerhub_loop *loop;
static timerhub_timer timers[TIMERS];
static struct timerhub_spec specs[TIMERS];
static struct timerhub_event events[TIMERS];
static struct timerhub_timeout timeouts[TIMERS];
static bool observable; /* whether hubs and loops are opened so */
static bool alone;      /* whether loops have no hub */
static int called;      /* number of callbacks since the operation began */

static void must(int result, int wanted, const char *what)
{
	if (result == wanted)
		return;
	(void)fprintf(stderr, "counted: %s: %d\n", what, result);
	exit(2);
}

static void advance_to(uint64_t now_ns)
{
	uint64_t next_ns;

	must(timerhub_advance(hub, now_ns, &next_ns), 0, "advance");
}

/* ---- the machine: two processors, and the program runs on the first ---- */

int sched_getcpu(void)
{
	return 0;
}

long sysconf(int name)
{
	must(name, _SC_NPROCESSORS_CONF, "sysconf");
	return 2;
}

/* ---- bodies: each makes a call for every timer ---- */

#define EACH(name, wanted, call)                                                                   \
	static void name(void)                                                                     \
	{                                                                                          \
		for (unsigned i = 0; i < TIMERS; i++)                                              \
			must(call, wanted, #name);                                                 \
	}

/* Makes a call for BATCH timers at once, from timer i on. */
#define BATCHES(name, call)                                                                        \
	static void name(void)                                                                     \
	{                                                                                          \
		for (unsigned i = 0; i < TIMERS; i += BATCH)                                       \
			must(call, BATCH, #name);                                                  \
	}

EACH(arm_all, 0, timerhub_arm(queue, &specs[i], &timers[i]))
BATCHES(arm_many_all, timerhub_arm_many(queue, specs + i, BATCH, timers + i))
EACH(rearm_all, 0, timerhub_rearm(hub, timers[i], 120 * SECOND_NS + i * STEP_NS, TIMERHUB_ABSOLUTE))
EACH(rearm_all_earlier, 0,
     timerhub_rearm(hub, timers[i], 30 * SECOND_NS + i * STEP_NS, TIMERHUB_ABSOLUTE))
BATCHES(rearm_many_all,
        timerhub_rearm_many(hub, timers + i, BATCH, 120 * SECOND_NS, TIMERHUB_ABSOLUTE))
EACH(cancel_all, 0, timerhub_cancel(hub, timers[i]))
BATCHES(cancel_many_all, timerhub_cancel_many(hub, timers + i, BATCH))
EACH(cancel_sync_all, 0, timerhub_cancel_sync(hub, timers[i]))
EACH(dispatch_each, 1, timerhub_dispatch(queue, 1))
EACH(wait_all, 1, timerhub_wait(queue, events, 1, SECOND_NS))

static void settle(void)
{
	advance_to(1);
}

static void expire_all(void)
{
	advance_to(61 * SECOND_NS);
}

static void drain_all(void)
{
	must(timerhub_drain(queue, events, TIMERS), TIMERS, "drain");
}

static void count_event(const struct timerhub_event *event)
{
	(void)event;
	called++;
}

static void dispatch_all(void)
{
	must(timerhub_dispatch(queue, TIMERS), TIMERS, "dispatch");
	must(called, TIMERS, "callbacks of a dispatch");
}

/* ---- the timeouts of a loop ---- */

static void count_timeout(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	(void)of;
	(void)timeout;
	called++;
}

__attribute__((noinline)) static int inline_set(struct timerhub_timeout *timeout)
{
	return timerhub_timeout_set(loop, timeout, 120 * SECOND_NS);
}

__attribute__((noinline)) static int inline_stop(struct timerhub_timeout *timeout)
{
	return timerhub_timeout_stop(loop, timeout);
}

/* An iteration of a server that has received a message: the idle timeout moves. */
__attribute__((noinline)) static int inline_message(struct timerhub_timeout *timeout)
{
	int result = timerhub_timeout_set(loop, timeout, 120 * SECOND_NS);

	return result < 0 || timerhub_loop_turn(loop) != 0 || timerhub_loop_timeout(loop) == 0;
}

/* The parentheses call the library's function in place of the inline one. */
EACH(set_each_first, 0, (timerhub_timeout_set)(loop, &timeouts[i], 60 * SECOND_NS + i * STEP_NS))
EACH(set_each_inline, 0, inline_set(&timeouts[i]))
EACH(stop_each_inline, 1, inline_stop(&timeouts[i]))
EACH(message_each, 0, inline_message(&timeouts[i]))
EACH(turn_idle, 0, timerhub_loop_turn(loop))

/* Sets each timeout for the first time, so that the loop schedules all of them in its next turn. */
static void set_and_file(void)
{
	set_each_first();
	must(timerhub_loop_turn(loop), 0, "turn");
}

static void turn_until_called(void)
{
	for (unsigned turns = 0; turns < TIMERS && called < TIMERS; turns++)
		must(timerhub_loop_turn(loop) < 0, 0, "turn");
	must(called, TIMERS, "callbacks of the turns");
}

/* ---- the state that an operation begins with ---- */

static void nothing(void)
{
}

static void arm_and_file(void)
{
	arm_all();
	settle();
}

static void arm_and_expire(void)
{
	arm_and_file();
	expire_all();
}

static void open_loop(void)
{
	struct timerhub_loop_config config = {
		.size = sizeof(config),
		.flags = observable ? TIMERHUB_LOOP_OBSERVABLE : 0,
	};

	must(timerhub_loop_open(&loop, alone ? NULL : hub, &config), 0, "loop_open");
	memset(timeouts, 0, sizeof(timeouts));
	for (unsigned i = 0; i < TIMERS; i++)
		must(timerhub_timeout_add(loop, &timeouts[i], count_timeout), 0, "add");
}

static void open_loop_and_set(void)
{
	open_loop();
	set_and_file();
}

static void open_loop_and_pass(void)
{
	open_loop_and_set();
	expire_all();
}

/*
 * `file` is the owner's work after a call of timerhub_arm(), and `expire` the owner's part of a
 * delivery. `drain`, `dispatch` and `wait` are the consumer's part of it.
 */
static const struct operation {
	const char *name;
	void (*prepare)(void);
	void (*body)(void); /* function that does the operation TIMERS times */
} operations[] = {
	{ "arm", nothing, arm_all },
	{ "arm_many", nothing, arm_many_all },
	{ "file", arm_all, settle },
	{ "rearm", arm_and_file, rearm_all },
	{ "rearm_earlier", arm_and_file, rearm_all_earlier },
	{ "rearm_many", arm_and_file, rearm_many_all },
	{ "cancel", arm_and_file, cancel_all },
	{ "cancel_many", arm_and_file, cancel_many_all },
	{ "cancel_sync", arm_and_file, cancel_sync_all },
	{ "expire", arm_and_file, expire_all },
	{ "drain", arm_and_expire, drain_all },
	{ "dispatch", arm_and_expire, dispatch_all },
	{ "dispatch_observable", arm_and_expire, dispatch_all },
	{ "dispatch_one", arm_and_expire, dispatch_each },
	{ "wait", arm_and_expire, wait_all },
	{ "timeout_set_inline", open_loop_and_set, set_each_inline },
	{ "timeout_set_filed", open_loop, set_and_file },
	{ "timeout_stop_inline", open_loop_and_set, stop_each_inline },
	{ "timeout_expire", open_loop_and_pass, turn_until_called },
	{ "timeout_expire_observable", open_loop_and_pass, turn_until_called },
	{ "loop_turn_idle", open_loop_and_set, turn_idle },
	{ "loop_alone_turn_idle", open_loop_and_set, turn_idle },
	{ "loop_alone_message", open_loop_and_set, message_each },
};

/* count.py gives callgrind the name counted(), so callgrind counts only inside counted(). */
__attribute__((noinline)) void counted(void (*body)(void));

void counted(void (*body)(void))
{
	body();
	/* prevents a tail call, so that counted() returns only after the body */
	__asm__ volatile("");
}

static void open_hub(void)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL |
		                                   (observable ? TIMERHUB_OBSERVABLE : 0),
		                          .timers_max = ROOM };

	must(timerhub_open(&hub, &config), 0, "open");
	must(timerhub_queue_open(hub, &queue, NULL), 0, "queue_open");
}

static void fill_specs(void)
{
	for (unsigned i = 0; i < TIMERS; i++)
		specs[i] = (struct timerhub_spec){ .size = sizeof(specs[i]),
			                           .flags = TIMERHUB_ABSOLUTE,
			                           .expires_ns = 60 * SECOND_NS + i * STEP_NS,
			                           .data = i,
			                           .fn = count_event };
}

/*
 * Measures one operation on a hub of its own, so that its figure does not depend on earlier
 * operations.
 */
static void measure(const struct operation *operation)
{
	observable = strstr(operation->name, "_observable") != NULL;
	alone = strstr(operation->name, "_alone_") != NULL;
	open_hub();
	fill_specs();
	arm_all(); /* the counted operation reuses these slots */
	cancel_all();
	settle();
	operation->prepare();
	called = 0;
	counted(operation->body);
	(void)printf("%s %d\n", operation->name, TIMERS);
	timerhub_loop_close(loop);
	loop = NULL;
	timerhub_queue_close(queue);
	timerhub_close(hub);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		measure(&operations[i]);
	return 0;
}
