/* SPDX-License-Identifier: MIT */
/*
 * Calls of the library, whose instructions check_counts.py counts under callgrind. Only the work
 * inside counted() is counted. A manual hub has no thread, so each run executes the same
 * instructions. The hub has room for many more timers than are armed, and the program stays on one
 * processor. So the calls never use the free slots and inbox lanes of other processors.
 *
 * Usage: counted arm|rearm|rearm_many|cancel|delivery. Prints the number of operations.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timerhub.h"

#define TIMERS 1024
#define ROOM (1u << 20)
#define BATCH 32
#define SECOND_NS 1000000000ull
#define STEP_NS 64000 /* distance of two deadlines */

static struct timerhub *hub;
static struct timerhub_queue *queue;
static timerhub_timer timers[TIMERS];
static struct timerhub_event events[TIMERS];

static void must(int result, int wanted, const char *what)
{
	if (result == wanted)
		return;
	(void)fprintf(stderr, "counted: %s: %d\n", what, result);
	exit(2);
}

static void arm_all(void)
{
	struct timerhub_spec spec = { .size = sizeof(spec), .flags = TIMERHUB_ABSOLUTE };

	for (unsigned i = 0; i < TIMERS; i++) {
		spec.expires_ns = 60 * SECOND_NS + i * STEP_NS;
		spec.data = i;
		must(timerhub_arm(queue, &spec, &timers[i]), 0, "arm");
	}
}

static void rearm_all(void)
{
	for (unsigned i = 0; i < TIMERS; i++)
		must(timerhub_rearm(hub, timers[i], 120 * SECOND_NS + i * STEP_NS,
		                    TIMERHUB_ABSOLUTE),
		     0, "rearm");
}

static void rearm_many_all(void)
{
	for (unsigned i = 0; i < TIMERS; i += BATCH)
		must(timerhub_rearm_many(hub, timers + i, BATCH, 120 * SECOND_NS,
		                         TIMERHUB_ABSOLUTE),
		     BATCH, "rearm_many");
}

static void cancel_all(void)
{
	for (unsigned i = 0; i < TIMERS; i++)
		must(timerhub_cancel(hub, timers[i]), 0, "cancel");
}

static void deliver_all(void)
{
	uint64_t next_ns;

	must(timerhub_advance(hub, 61 * SECOND_NS, &next_ns), 0, "advance");
	must(timerhub_drain(queue, events, TIMERS), TIMERS, "drain");
}

static void settle(void)
{
	uint64_t next_ns;

	must(timerhub_advance(hub, 1, &next_ns), 0, "advance");
}

/* check_counts.py names this function to callgrind. */
__attribute__((noinline)) void counted(void (*body)(void));

void counted(void (*body)(void))
{
	body();
}

static void stay_here(void)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	must(cpu < 0, 0, "sched_getcpu");
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	must(sched_setaffinity(0, sizeof(one), &one), 0, "sched_setaffinity");
}

static void open_hub(void)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL,
		                          .timers_max = ROOM };

	must(timerhub_open(&hub, &config), 0, "open");
	must(timerhub_queue_open(hub, &queue, NULL), 0, "queue_open");
}

static void measure(void (*body)(void))
{
	arm_all(); /* use the slots once, so that the counted run reuses them */
	cancel_all();
	settle();
	if (body != arm_all) {
		arm_all();
		settle();
	}
	counted(body);
	(void)printf("%d\n", TIMERS);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} operations[] = {
		{ "arm", arm_all },
		{ "rearm", rearm_all },
		{ "rearm_many", rearm_many_all },
		{ "cancel", cancel_all },
		{ "delivery", deliver_all },
	};

	stay_here();
	open_hub();
	for (size_t i = 0; argc == 2 && i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(argv[1], operations[i].name) == 0)
			measure(operations[i].body);
	timerhub_queue_close(queue);
	timerhub_close(hub);
	return 0;
}
