/* SPDX-License-Identifier: MIT */
/* The types of a workload, of its arguments and of its results. workload.c lists the workloads. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "histogram.h"
#include "subject.h"

/* number of operations between two readings of the clock, about one turn of a busy event loop */
#define TURN_OPS 64

#define RESULT_EXTRAS_MAX 12

/* The arguments of one measurement, which is made in a process of its own. */
struct run {
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	uint64_t duration_ns; /* duration of the measurement in most workloads */
	uint64_t seed;
};

struct extra {
	char name[24];
	double value;
};

struct result {
	double ns_per_op;     /* wall time divided by the number of operations of all threads */
	double cpu_ns_per_op; /* CPU time of the process divided by the number of operations */
	unsigned extras_count;
	struct extra extras[RESULT_EXTRAS_MAX];
};

void result_add(struct result *result, const char *name, double value);

/*
 * Store the value "ns_per_op", "cpu_ns_per_op", or that of an extra. Returns false if there is
 * none.
 */
bool result_value(const struct result *result, const char *name, double *ret_value);

/*
 * Add percentiles with names such as "p50_us". The list `percents` ends with 0, the unit is "us" or
 * "ns".
 */
void result_add_percentiles(struct result *result, const struct histogram *histogram,
                            const char *unit, const double *percents);

/* The wall time and the CPU time at the beginning of a measurement. */
struct meter {
	uint64_t cpu_ns, start_ns;
};

struct meter meter_start(void);

/*
 * Set ns_per_op and cpu_ns_per_op of the result, for `ops` operations since the meter was started.
 */
void meter_stop(const struct meter *meter, struct result *result, uint64_t ops);

#define WORKLOAD_SIZES_MAX 6
#define EACH_CPU UINT32_MAX /* 1, 2, 4 ... up to two less than the CPUs */

struct workload {
	const char *name;
	const char *what; /* description of one operation */
	unsigned needs;   /* CAN_… flags that a service needs for the workload */
	uint32_t timers[WORKLOAD_SIZES_MAX];  /* default numbers of timers; ends with 0 */
	uint32_t threads[WORKLOAD_SIZES_MAX]; /* the same; or EACH_CPU */
	unsigned rounds; /* 0: as --rounds says; 1: one is enough; more: at least so many */
	void (*measure)(const struct run *run, struct result *result);
};

/* The workloads, in the order of the table. The last element of the array has no name. */
extern const struct workload workloads[];

const struct workload *workload_find(const char *name);

#endif
