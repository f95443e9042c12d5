/* SPDX-License-Identifier: MIT */
/* A workload measures a subject. main.c lists the workloads, and runs them. */
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

/* Times in ns are divided by the operations of all threads; CPU time is the whole process's. */
enum figure { WALL_NS, CPU_NS, P50_US, P99_US, MAX_US, EARLY, FIGURES };

struct result {
	double figures[FIGURES]; /* negative: not measured */
};

typedef void workload_measure(const struct run *run, struct result *result);

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

/* Sets the times of the result, for `ops` operations from the meter's start until now. */
void meter_stop(const struct meter *meter, struct result *result, uint64_t ops);

#endif
