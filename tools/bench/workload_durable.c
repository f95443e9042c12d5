/* SPDX-License-Identifier: MIT */
/*
 * Durable puts: T threads put tasks for some hour to come, each call returning when the task is on
 * stable storage. Says how many puts shared a sync, where the subject can tell.
 */
#include "clocks.h"
#include "histogram.h"
#include "subject.h"
#include "team.h"
#include "workload_list.h"

#define DELAY_NS (3600 * NS_PER_SECOND)
/* A disk that syncs in milliseconds wants a longer look than a timer. */
#define DURATIONS 5

struct putter {
	_Alignas(64) uint64_t puts;
	struct histogram waits; /* of one call each */
};

static struct putter *putters;

static void put(unsigned member, void *context)
{
	const struct run *run = context;
	struct putter *putter = &putters[member];
	uint64_t before = now_ns(), end = before + run->duration_ns * DURATIONS;

	while (before < end) {
		uint64_t after;

		subject_must(run->subject->arm(0, DELAY_NS));
		after = now_ns();
		histogram_add(&putter->waits, after - before);
		before = after;
		putter->puts++;
	}
}

static void read_counts(const struct run *run, struct subject_counts *ret_counts)
{
	*ret_counts = (struct subject_counts){ 0 };
	if (run->subject->counts)
		run->subject->counts(ret_counts);
}

static void durable_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	struct subject_counts before, after;
	static struct histogram waits;
	uint64_t cpu_ns, start_ns, wall_ns, puts = 0, syncs;
	struct run copy = *run;

	putters = subject_allocate(run->threads, sizeof(*putters));
	run->subject->open(&setup);
	read_counts(run, &before);
	cpu_ns = process_cpu_ns();
	start_ns = team_run(run->threads, put, &copy).start_ns;
	wall_ns = now_ns() - start_ns;
	cpu_ns = process_cpu_ns() - cpu_ns;
	read_counts(run, &after);
	for (unsigned i = 0; i < run->threads; i++) {
		puts += putters[i].puts;
		histogram_merge(&waits, &putters[i].waits);
	}
	syncs = after.syncs - before.syncs;
	if (!run->subject->counts)
		syncs = puts;
	cpu_ns += after.other_cpu_ns - before.other_cpu_ns;
	result->ns_per_op = (double)wall_ns / (double)puts;
	result->cpu_ns_per_op = (double)cpu_ns / (double)puts;
	result_add(result, "puts_per_s", (double)puts * 1e9 / (double)wall_ns);
	if (syncs > 0) {
		result_add(result, "syncs_per_s", (double)syncs * 1e9 / (double)wall_ns);
		result_add(result, "batch", (double)puts / (double)syncs);
	}
	result_add(result, "p50_us", histogram_quantile_ns(&waits, 0.5) * 1e-3);
	result_add(result, "p99_us", histogram_quantile_ns(&waits, 0.99) * 1e-3);
	if (run->subject->close)
		run->subject->close();
}

const struct workload workload_durable = {
	.name = "durable",
	.what = "put a task; it is on disk when the call returns (room for N)",
	.needs = CAN_PUT_DURABLY,
	.shows = "puts_per_s",
	.timers = { 1000000 },
	.threads = { 1, 16, 64 },
	.measure = durable_measure,
};
