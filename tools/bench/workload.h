/* SPDX-License-Identifier: MIT */
/*
 * A workload measures a subject. main.c lists the workloads, and runs them; driver.c has the steps
 * that they have in common.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "subject.h"

/* What is measured, in a process of its own. */
struct run {
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	uint64_t seed;
};

/* Measures the run, and prints its figures by report(). */
typedef void workload_measure(const struct run *run);

/* Prints a figure, whose name begins or ends with its unit. */
void report(const char *name, double value);

struct workload {
	const char *name;
	unsigned needs;      /* flags of the subjects that it measures */
	uint32_t timers[5];  /* numbers of timers; ends with 0 */
	uint32_t threads[4]; /* the same; EACH_CPU: 1, 2, 4 ... up to two less than the CPUs */
	workload_measure *measure;
};

#define EACH_CPU UINT32_MAX

workload_measure refresh_measure, churn_measure, server_measure, busy_measure;
workload_measure lateness_measure, durable_measure, cycle_measure;

/* The folder of this measurement's durable tasks. */
extern const char *bench_folder;

/* The wall time and the CPU time at the beginning of a measurement. */
struct meter {
	uint64_t cpu_ns, start_ns;
};

struct meter meter_start(void);

/*
 * Reports the wall time and the CPU time of the whole process since the meter's start, both divided
 * by the number of operations of all threads.
 */
void meter_stop(const struct meter *meter, uint64_t ops);

/* ---- driver.c ---- */

#define TEAM_MAX 64

/* Opens the run's subject, with a thread in run() if setup->cross is set. */
void driver_open(const struct run *run, const struct subject_setup *setup);

/* Arms, and waits while the subject is full. */
void driver_arm(uint32_t timer, uint64_t delay_ns);

/* With setup->cross, waits until one more timer has expired: all earlier calls are then applied. */
void driver_settle(void);

/* Returns the number of CPUs that this process may use. */
unsigned cpus_count(void);

/*
 * Calls body(member) on so many threads, which begin together, and waits until all have returned.
 * Returns the time at which they began.
 */
uint64_t team_run(unsigned members, void (*body)(unsigned member));

#endif
