/* SPDX-License-Identifier: MIT */
/*
 * Measures durable tasks. In "durable", T threads put tasks that are due an hour later, until a
 * time has passed. In "cycle", each puts a task that is due at once, takes a task, perhaps of
 * another thread, and acknowledges it. Each call returns when its change is on stable storage.
 */
#include "clocks.h"
#include "driver.h"
#include "histogram.h"
#include "thread_team.h"

#define DELAY_NS (3600 * NS_PER_SECOND)
/* a measurement's duration is multiplied by this, because a sync of a disk takes milliseconds */
#define DURATIONS 5

static struct putter {
	_Alignas(64) uint64_t puts;
	struct histogram waits; /* durations of the thread's puts or cycles */
} putters[TEAM_MAX];

static const struct run *plan;
static bool cycles;

static void work(unsigned member, void *context)
{
	struct putter *putter = &putters[member];
	const struct subject *subject = plan->subject;
	uint64_t before = now_ns(), end = before + plan->duration_ns * DURATIONS;

	(void)context;
	while (before < end) {
		uint64_t after;

		subject_must(subject->arm(0, cycles ? 0 : DELAY_NS));
		if (cycles)
			subject_must(subject->finish());
		after = now_ns();
		histogram_add(&putter->waits, after - before);
		before = after;
		putter->puts++;
	}
}

static void measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .threads = run->threads };
	unsigned threads = run->subject->alone ? 1 : run->threads;
	uint64_t (*server_cpu_ns)(void) = run->subject->server_cpu_ns;
	uint64_t server_ns, puts = 0;
	struct meter meter;

	plan = run;
	driver_open(run, &setup, NULL);
	server_ns = server_cpu_ns ? server_cpu_ns() : 0;
	meter = meter_start();
	meter.start_ns = team_run(threads, work, NULL).start_ns;
	if (server_cpu_ns)
		meter.cpu_ns -= server_cpu_ns() - server_ns;
	for (unsigned i = 0; i < threads; i++) {
		puts += putters[i].puts;
		if (i > 0)
			histogram_merge(&putters[0].waits, &putters[i].waits);
	}
	meter_stop(&meter, result, puts);
	result_add(result, "a second", 1e9 / result->ns);
	result_add_durations(result, &putters[0].waits);
	if (run->subject->close)
		run->subject->close();
}

void durable_measure(const struct run *run, struct result *result)
{
	measure(run, result);
}

void cycle_measure(const struct run *run, struct result *result)
{
	cycles = true;
	measure(run, result);
}
