/* SPDX-License-Identifier: MIT */
/* All results: one cell for each workload, number of timers, number of threads, and subject. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "bench.h"

#define ROUNDS_MAX 64

struct cell {
	const struct workload *workload;
	const struct subject *subject;
	uint32_t timers;
	unsigned threads;
	unsigned rounds; /* rounds measured so far; 0: none, or the measurement failed */
	struct result results[ROUNDS_MAX];
};

struct table {
	struct cell *cells;
	unsigned count, room;
};

/* The median, smallest and largest value of the rounds. */
struct spread {
	double median, min, max;
};

void table_add(struct table *table, const struct workload *workload, const struct subject *subject,
               uint32_t timers, unsigned threads);

/* Returns NULL if the table has no such cell, or if the cell has no result. */
const struct cell *table_find(const struct table *table, const char *workload, const char *subject,
                              uint32_t timers, unsigned threads);

/*
 * `value` is "ns_per_op", "cpu_ns_per_op", or an extra's name. Returns false if the cell has no
 * such value.
 */
bool cell_spread(const struct cell *cell, const char *value, struct spread *ret_spread);

#endif
