/* SPDX-License-Identifier: MIT */
/*
 * Measures opening and closing a service with room for N timers, and the resident memory just after
 * the open.
 */
#include "clocks.h"
#include "driver.h"
#include "process.h"
#include "workload_list.h"

#define OPEN_TIMES 20

static void open_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .bare = true };
	uint64_t start_ns, cpu_ns, resident;

	run->subject->open(&setup); /* warm up: code pages, the thread's stack */
	run->subject->close();
	resident = process_resident_bytes();
	run->subject->open(&setup);
	resident = process_resident_bytes() - resident;
	run->subject->close();
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	for (unsigned i = 0; i < OPEN_TIMES; i++) {
		run->subject->open(&setup);
		run->subject->close();
	}
	result->ns_per_op = (double)(now_ns() - start_ns) / OPEN_TIMES;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / OPEN_TIMES;
	result_add(result, "resident_kb", (double)resident / 1024);
}

const struct workload workload_open = {
	.name = "open",
	.what = "open and close with room for N timers",
	.needs = CAN_OPEN_LARGE,
	.shows = "resident_kb",
	.timers = { 10000000 },
	.threads = { 1 },
	.measure = open_measure,
};
