/* SPDX-License-Identifier: MIT */
/*
 * Measures durable tasks. In "durable", T threads put tasks that are due hours later, until a time
 * has passed or N are put. A put returns when the task is on stable storage; a service with one
 * thread may keep many in flight. If it knows its syncs, the puts for each sync are reported.
 *
 * In "cycle", each of T threads puts a task that is due at once, takes a task, perhaps of another
 * thread, and acknowledges it. Each call returns when its change is on stable storage.
 *
 * In "durable-4" and "cycle-4", four processes with T threads each do so with the same tasks.
 */
#include <pthread.h>

#include "children.h"
#include "clocks.h"
#include "disk_folder.h"
#include "thread_team.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define DELAY_NS (3600 * NS_PER_SECOND)
/* a measurement's duration is multiplied by this, because a sync of a disk takes milliseconds */
#define DURATIONS 5
#define PROCESSES 4

struct putter {
	_Alignas(64) uint64_t puts;
	uint64_t puts_max;
	struct histogram waits; /* durations of the thread's puts or cycles */
};

static struct part {
	pthread_barrier_t opened; /* of the first part: for all processes */
	uint64_t wall_ns, cpu_ns, syncs;
	struct putter putters[TEAM_MAX];
} * parts; /* one for each process */

static struct run plan; /* of each process */
static unsigned processes;

static int put(const struct subject *subject)
{
	return subject->arm(0, DELAY_NS);
}

static int cycle(const struct subject *subject)
{
	int result = subject->arm(0, 0);

	return result < 0 ? result : subject->finish();
}

static int (*operation)(const struct subject *subject);

static void work(unsigned member, void *context)
{
	struct putter *putter = &((struct part *)context)->putters[member];
	const struct subject *subject = plan.subject;
	uint64_t before = now_ns(), end = before + plan.duration_ns * DURATIONS;

	while (before < end && putter->puts < putter->puts_max) {
		uint64_t after;

		subject_must(operation(subject));
		after = now_ns();
		histogram_add(&putter->waits, after - before);
		before = after;
		putter->puts++;
	}
	if (subject->flush)
		subject_must(subject->flush());
	if (subject->waits)
		putter->waits = *subject->waits;
}

static void process(unsigned child)
{
	struct part *part = &parts[child];
	struct subject_setup setup = { .timers = plan.timers, .threads = plan.threads };
	unsigned threads = plan.subject->alone ? 1 : plan.threads;
	struct subject_counts before, after;
	uint64_t start_ns;

	for (unsigned i = 0; i < threads; i++)
		part->putters[i].puts_max =
			operation == cycle ? UINT64_MAX : plan.timers / processes / threads;
	(void)driver_open(&plan, &setup, NULL);
	team_before = child * threads;
	(void)pthread_barrier_wait(&parts->opened);
	before = driver_counts();
	part->cpu_ns = process_cpu_ns();
	start_ns = team_run(threads, work, part).start_ns;
	part->wall_ns = now_ns() - start_ns;
	part->cpu_ns = process_cpu_ns() - part->cpu_ns;
	after = driver_counts();
	part->cpu_ns += after.other_cpu_ns - before.other_cpu_ns;
	part->syncs = after.syncs - before.syncs;
	if (plan.subject->close)
		plan.subject->close();
}

/* Make the file of the tasks, since processes that open the same new one may refuse each other. */
static void prepare(unsigned child)
{
	struct subject_setup setup = { .timers = plan.timers };

	(void)child;
	(void)driver_open(&plan, &setup, NULL);
	if (plan.subject->close)
		plan.subject->close();
}

static void measure(const struct run *run, struct result *result)
{
	static struct histogram waits;
	uint64_t wall_ns = 0, cpu_ns = 0, puts = 0, syncs = 0;
	pthread_barrierattr_t shared;

	plan = *run;
	parts = children_share(processes * sizeof(*parts));
	(void)pthread_barrierattr_init(&shared);
	(void)pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	(void)pthread_barrier_init(&parts->opened, &shared, processes);
	if (processes > 1) {
		(void)folder_make();
		children_begin(1, prepare);
		children_await(1);
		children_begin(processes, process);
		children_await(processes);
	} else {
		process(0);
	}
	for (struct part *part = parts; part < parts + processes; part++) {
		wall_ns = part->wall_ns > wall_ns ? part->wall_ns : wall_ns;
		cpu_ns += part->cpu_ns;
		syncs += part->syncs;
		for (unsigned i = 0; i < TEAM_MAX; i++) {
			puts += part->putters[i].puts;
			histogram_merge(&waits, &part->putters[i].waits);
		}
	}
	if (!run->subject->counts)
		syncs = operation == cycle ? 2 * puts : puts;
	result->ns_per_op = (double)wall_ns / (double)puts;
	result->cpu_ns_per_op = (double)cpu_ns / (double)puts;
	result_add(result, operation == cycle ? "cycles_per_s" : "puts_per_s",
	           (double)puts * 1e9 / (double)wall_ns);
	if (syncs > 0) {
		result_add(result, "syncs_per_s", (double)syncs * 1e9 / (double)wall_ns);
		result_add(result, "batch", (double)puts / (double)syncs);
	}
	result_add_percentiles(result, &waits, "us", (const double[]){ 50, 99, 0 });
}

#define MEASURE(name, operates, number)                                                            \
	void name##_measure(const struct run *run, struct result *result)                          \
	{                                                                                          \
		operation = operates;                                                              \
		processes = number;                                                                \
		measure(run, result);                                                              \
	}

MEASURE(durable, put, 1)
MEASURE(cycle, cycle, 1)
MEASURE(durable_4, put, PROCESSES)
MEASURE(cycle_4, cycle, PROCESSES)
