/* SPDX-License-Identifier: MIT */
/* A workload, its arguments and its results. Each workload has one file. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

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

#define WORKLOAD_SIZES_MAX 6

struct workload {
	const char *name;
	const char *what;                     /* description of one operation */
	unsigned needs;                       /* CAN_… flags that its subjects need */
	const char *shows;                    /* extra value to print, or NULL */
	uint32_t timers[WORKLOAD_SIZES_MAX];  /* default; ends with 0 */
	unsigned threads[WORKLOAD_SIZES_MAX]; /* default; ends with 0 */
	unsigned rounds_max;                  /* most rounds that are useful; 0: no limit */
	void (*measure)(const struct run *run, struct result *result);
};

/* NULL-terminated, in the order of the table. */
extern const struct workload *const workloads[];

const struct workload *workload_find(const char *name);

#endif
