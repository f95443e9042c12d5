/* SPDX-License-Identifier: MIT */
/*
 * Measures memory. "memory" arms N timers, and reports the growth of resident memory for each: with
 * what users embed in their records, and without the handles that they store, reported as "handle".
 *
 * "open" reports the time of an open and a close with room for N timers, and the growth by the
 * open.
 */
#include "clocks.h"
#include "process_usage.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define OPEN_TIMES 20

void memory_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	uint64_t before = process_resident_bytes();
	struct meter meter;

	(void)driver_open(run, &setup, NULL);
	meter = meter_start();
	driver_arm_all(run->timers, 60 * NS_PER_SECOND, 120 * NS_PER_SECOND, run->seed);
	driver_settle();
	meter_stop(&meter, result, run->timers);
	result_add(result, "bytes",
	           (double)(process_resident_bytes() - before) / run->timers -
	                   run->subject->handle_bytes);
	result_add(result, "handle", run->subject->handle_bytes);
}

void open_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .bare = true };
	struct meter meter;
	uint64_t resident;

	/* The first open brings code pages and the thread's stack into memory. */
	run->subject->open(&setup);
	run->subject->close();
	resident = process_resident_bytes();
	run->subject->open(&setup);
	resident = process_resident_bytes() - resident;
	run->subject->close();
	meter = meter_start();
	for (unsigned i = 0; i < OPEN_TIMES; i++) {
		run->subject->open(&setup);
		run->subject->close();
	}
	meter_stop(&meter, result, OPEN_TIMES);
	result_add(result, "resident_kb", (double)resident / 1024);
}
