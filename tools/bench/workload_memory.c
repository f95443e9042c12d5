/* SPDX-License-Identifier: MIT */
/*
 * Measures resident bytes for each live timer. The process opens a subject and arms N timers, and
 * its growth is divided by N. Timers that users embed in their records count. Handles that users
 * store do not count, and are reported as "handle".
 */
#include "clocks.h"
#include "driver.h"
#include "process.h"
#include "workload_list.h"

#define DELAY_FROM_NS (60 * NS_PER_SECOND)
#define DELAY_TO_NS (120 * NS_PER_SECOND)

static void memory_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	uint64_t before = process_resident_bytes();
	uint64_t start_ns, cpu_ns;
	double bytes;

	(void)driver_open(run, &setup, NULL);
	start_ns = now_ns();
	cpu_ns = process_cpu_ns();
	driver_arm_all(run->timers, DELAY_FROM_NS, DELAY_TO_NS, run->seed);
	driver_settle();
	result->ns_per_op = (double)(now_ns() - start_ns) / run->timers;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / run->timers;
	bytes = (double)(process_resident_bytes() - before) / run->timers;
	result_add(result, "bytes", bytes - run->subject->handle_bytes);
	result_add(result, "handle", run->subject->handle_bytes);
}

const struct workload workload_memory = {
	.name = "memory",
	.what = "resident bytes a timer (times: the first arm of each)",
	.needs = CAN_EXPIRE,
	.shows = "bytes",
	.timers = { 10, 1000, 1000000, 10000000 },
	.threads = { 1 },
	.rounds_max = 1,
	.measure = memory_measure,
};
