/* SPDX-License-Identifier: MIT */
/* A workload measures a subject. main.c lists the workloads, and runs them. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "subject.h"

#define TURN_OPS 64 /* calls between two readings of the clock, as in a turn of a busy event loop */
#define EXTRAS_MAX 8

/* What is measured, in a process of its own. */
struct run {
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	uint64_t duration_ns; /* of the measurement, unless the workload has a length of its own */
	uint64_t seed;
};

struct result {
	double ns;     /* wall time, divided by the operations of all threads */
	double cpu_ns; /* CPU time of the process, divided by the same */
	unsigned extras_count;
	struct {
		char name[20];
		double value;
	} extras[EXTRAS_MAX];
};

typedef void workload_measure(const struct run *run, struct result *result);

struct workload {
	const char *name;
	const char *what;    /* describes one operation */
	unsigned needs;      /* flags of the subjects that it measures */
	uint32_t timers[5];  /* default numbers of timers; ends with 0 */
	uint32_t threads[4]; /* the same; EACH_CPU: 1, 2, 4 ... up to two less than the CPUs */
	unsigned rounds;     /* at least so many; 1: one is enough; 0: as many as --rounds says */
	workload_measure *measure;
};

#define EACH_CPU UINT32_MAX

workload_measure refresh_measure, churn_measure, server_measure, busy_measure;
workload_measure burst_measure, lateness_measure, memory_measure;
workload_measure durable_measure, cycle_measure;

/* The folder of this measurement's durable tasks. */
extern const char *bench_folder;

void result_add(struct result *result, const char *name, double value);

struct histogram;

/* Adds the median, the 99th percentile and the largest duration, in us. */
void result_add_durations(struct result *result, const struct histogram *histogram);

/* The wall time and the CPU time at the beginning of a measurement. */
struct meter {
	uint64_t cpu_ns, start_ns;
};

struct meter meter_start(void);

/* Sets the times of the result, for `ops` operations since the meter was started. */
void meter_stop(const struct meter *meter, struct result *result, uint64_t ops);

#endif
