/* SPDX-License-Identifier: MIT */
/* A workload, its arguments and its results. bench.c lists the workloads. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "histogram.h"
#include "subject.h"

/* Operations between two readings of the clock: about one turn of a busy event loop. */
#define TURN_OPS 64

#define RESULT_EXTRAS_MAX 12

/* One measurement, made in a process of its own. */
struct run {
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	uint64_t duration_ns; /* duration of the measurement, for workloads that have one */
	uint64_t seed;
};

struct extra {
	char name[24];
	double value;
};

struct result {
	double ns_per_op;     /* wall time by the operations of all threads */
	double cpu_ns_per_op; /* CPU time of the whole process by operations */
	unsigned extras_count;
	struct extra extras[RESULT_EXTRAS_MAX];
};

void result_add(struct result *result, const char *name, double value);

/*
 * `name` is "ns_per_op", "cpu_ns_per_op", or an extra's name. Returns false if the result has no
 * such value.
 */
bool result_value(const struct result *result, const char *name, double *ret_value);

/* Add the percentiles, which end with 0, as "p50_us" and so on. The unit is "us" or "ns". */
void result_add_percentiles(struct result *result, const struct histogram *histogram,
                            const char *unit, const double *percents);

/* The wall and CPU time at the begin of a measurement. */
struct meter {
	uint64_t cpu_ns, start_ns;
};

struct meter meter_start(void);

/* Set the two times of the result. */
void meter_stop(const struct meter *meter, struct result *result, uint64_t ops);

#define WORKLOAD_SIZES_MAX 6

struct workload {
	const char *name;
	const char *what;                     /* description of one operation */
	unsigned needs;                       /* CAN_… flags that its subjects need */
	uint32_t timers[WORKLOAD_SIZES_MAX];  /* default; ends with 0 */
	uint32_t threads[WORKLOAD_SIZES_MAX]; /* default; ends with 0 */
	unsigned rounds_max;                  /* most rounds that are useful; 0: no limit */
	void (*measure)(const struct run *run, struct result *result);
};

/* In the order of the table. The last has no name. */
extern const struct workload workloads[];

const struct workload *workload_find(const char *name);

#endif
