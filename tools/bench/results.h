/* SPDX-License-Identifier: MIT */
/*
 * The table has one cell for each combination of workload, subject (a measured service), number of
 * timers, and number of threads.
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "workload.h"

#define ROUNDS_MAX 64

struct cell {
	const struct workload *workload;
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	unsigned rounds; /* number of rounds that were measured before any failure */
	struct result results[ROUNDS_MAX];
};

struct table {
	struct cell *cells;
	unsigned count, room;
};

/* The median, the smallest and the largest value of the rounds. */
struct spread {
	double median, min, max;
};

void table_add(struct table *table, const struct workload *workload, const struct subject *subject,
               uint32_t timers, unsigned threads);

/*
 * Find the cell of a workload, a subject and numbers of timers and threads. Returns NULL if the
 * cell is missing or has no result.
 */
const struct cell *table_find(const struct table *table, const char *workload, const char *subject,
                              uint32_t timers, unsigned threads);

/*
 * Compute the median and the bounds of `value`: "ns_per_op", "cpu_ns_per_op", or an extra's name.
 * Returns false if the cell has no such value.
 */
bool cell_spread(const struct cell *cell, const char *value, struct spread *ret_spread);

#endif
