/* SPDX-License-Identifier: MIT */
/*
 * Measures durable tasks. In "durable", T threads put tasks that are due hours later, until a time
 * has passed or the journal is full. A put returns when the task is on stable storage; a service
 * with one thread may keep many in flight. If it knows its syncs, the puts for each sync are
 * reported.
 *
 * In "cycle", each of T threads puts a task that is due at once, takes a task, perhaps of another
 * thread, and acknowledges it. Each call returns when its change is on stable storage.
 */
#include "clocks.h"
#include "thread_team.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define DELAY_NS (3600 * NS_PER_SECOND)
/* a measurement's duration is multiplied by this, because a sync of a disk takes milliseconds */
#define DURATIONS 5

struct putter {
	_Alignas(64) uint64_t puts;
	uint64_t puts_max;
	struct histogram waits; /* durations of the thread's puts or cycles */
};

static struct putter *putters;

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
	const struct run *run = context;
	struct putter *putter = &putters[member];
	uint64_t before = now_ns(), end = before + run->duration_ns * DURATIONS;

	while (before < end && putter->puts < putter->puts_max) {
		uint64_t after;

		subject_must(operation(run->subject));
		after = now_ns();
		histogram_add(&putter->waits, after - before);
		before = after;
		putter->puts++;
	}
	if (run->subject->flush)
		subject_must(run->subject->flush());
}

static void measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	struct subject_counts before, after;
	static struct histogram waits;
	uint64_t cpu_ns, start_ns, wall_ns, puts = 0, syncs;
	unsigned threads = run->subject->alone ? 1 : run->threads;
	struct run copy = *run;

	putters = subject_allocate(threads, sizeof(*putters));
	for (unsigned i = 0; i < threads; i++)
		putters[i].puts_max = operation == cycle ? UINT64_MAX : run->timers / threads;
	(void)driver_open(run, &setup, NULL);
	before = driver_counts();
	cpu_ns = process_cpu_ns();
	start_ns = team_run(threads, work, &copy).start_ns;
	wall_ns = now_ns() - start_ns;
	cpu_ns = process_cpu_ns() - cpu_ns;
	after = driver_counts();
	for (unsigned i = 0; i < threads; i++) {
		puts += putters[i].puts;
		histogram_merge(&waits, &putters[i].waits);
	}
	syncs = after.syncs - before.syncs;
	if (!run->subject->counts)
		syncs = operation == cycle ? 2 * puts : puts;
	cpu_ns += after.other_cpu_ns - before.other_cpu_ns;
	result->ns_per_op = (double)wall_ns / (double)puts;
	result->cpu_ns_per_op = (double)cpu_ns / (double)puts;
	result_add(result, operation == cycle ? "cycles_per_s" : "puts_per_s",
	           (double)puts * 1e9 / (double)wall_ns);
	if (syncs > 0) {
		result_add(result, "syncs_per_s", (double)syncs * 1e9 / (double)wall_ns);
		result_add(result, "batch", (double)puts / (double)syncs);
	}
	result_add_percentiles(result, &waits, "us", (const double[]){ 50, 99, 0 });
	if (run->subject->close)
		run->subject->close();
}

void durable_measure(const struct run *run, struct result *result)
{
	operation = put;
	measure(run, result);
}

void cycle_measure(const struct run *run, struct result *result)
{
	operation = cycle;
	measure(run, result);
}
