/* SPDX-License-Identifier: MIT */
/* What a workload is, what it is given, and what it finds. One file per workload. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "subject.h"

/* Operations between two looks at the clock: about what one turn of a busy event loop does. */
#define TURN_OPS 64

#define RESULT_EXTRAS_MAX 12

/* One measurement to make: in a process of its own. */
struct run {
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	uint64_t duration_ns; /* how long to measure, where that is free to choose */
	uint64_t seed;
};

struct extra {
	char name[24];
	double value;
};

struct result {
	double ns_per_op;     /* wall time by operations of all threads */
	double cpu_ns_per_op; /* CPU time of the whole process by operations */
	unsigned extras_count;
	struct extra extras[RESULT_EXTRAS_MAX];
};

void result_add(struct result *result, const char *name, double value);

#define WORKLOAD_SIZES_MAX 6

struct workload {
	const char *name;
	const char *what;                     /* what one operation is */
	unsigned needs;                       /* CAN_… of its subjects */
	const char *shows;                    /* the extra to print; NULL: the times suffice */
	uint32_t timers[WORKLOAD_SIZES_MAX];  /* by default; ends with 0 */
	unsigned threads[WORKLOAD_SIZES_MAX]; /* by default; ends with 0 */
	unsigned rounds_max;                  /* more would show nothing new; 0: no limit */
	void (*measure)(const struct run *run, struct result *result);
};

/* NULL-terminated, in the order of the table. */
extern const struct workload *const workloads[];

const struct workload *workload_find(const char *name);

#endif
