/* SPDX-License-Identifier: MIT */
/*
 * Measures the lateness of 10^4 timers that expire within a second. The consumer polls with epoll,
 * if the service allows epoll.
 */
#include <sys/prctl.h>

#include "clocks.h"
#include "lateness_timers.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define START_NS (100 * NS_PER_MS)

void lateness_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .epoll = true };
	const struct subject *subject;
	uint64_t wakeups, cpu_ns;

	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	subject = driver_open(run, &setup, late_record);
	late_arm(subject, 0, run->timers, START_NS, START_NS + NS_PER_SECOND, run->seed);
	wakeups = driver_counts().owner_wakeups;
	cpu_ns = process_cpu_ns();
	driver_await(run->timers);
	cpu_ns = process_cpu_ns() - cpu_ns;
	wakeups = driver_counts().owner_wakeups - wakeups;
	result->cpu_ns_per_op = (double)cpu_ns / run->timers;
	late_add(result, (const double[]){ 10, 50, 90, 99, 99.9, 0 });
	(void)result_value(result, "p50_us", &result->ns_per_op);
	result->ns_per_op *= 1e3;
	if (wakeups > 0)
		result_add(result, "cpu_ns_per_wakeup", (double)cpu_ns / (double)wakeups);
}
