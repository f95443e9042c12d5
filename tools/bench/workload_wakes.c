/* SPDX-License-Identifier: MIT */
/* Counts how often 20,000 arms with random deadlines of 1 to 60 s wake the sleeping owner. */
#include "clocks.h"
#include "driver.h"
#include "workload_list.h"

#define DELAY_FROM_NS NS_PER_SECOND
#define DELAY_TO_NS (60 * NS_PER_SECOND)

static void wakes_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .cross = true };
	struct subject_counts before = { 0 }, after = { 0 };
	const struct subject *subject = driver_open(run, &setup, NULL);
	uint64_t start_ns, cpu_ns;

	driver_settle();
	subject->counts(&before);
	start_ns = now_ns();
	cpu_ns = process_cpu_ns();
	driver_arm_all(run->timers, DELAY_FROM_NS, DELAY_TO_NS, run->seed);
	result->ns_per_op = (double)(now_ns() - start_ns) / run->timers;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / run->timers;
	subject->counts(&after);
	result_add(result, "submit_wakes", (double)(after.submit_wakes - before.submit_wakes));
	result_add(result, "owner_wakeups", (double)(after.owner_wakeups - before.owner_wakeups));
}

const struct workload workload_wakes = {
	.name = "wakes",
	.what = "arm at random deadlines; wakes of the owner by submitters",
	.needs = CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES,
	.shows = "submit_wakes",
	.timers = { 20000 },
	.threads = { 1 },
	.measure = wakes_measure,
};
