/* SPDX-License-Identifier: MIT */
/*
 * Prints results as tables and as lines of JSON, and compares results with timerhub's targets (the
 * bars).
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "results.h"

/*
 * Print the cells [from, to) as a table. All these cells have the same workload and the same number
 * of timers.
 */
void report_group(const struct table *table, unsigned from, unsigned to);

/*
 * Print a cell as a line of JSON, with the medians, and the smallest and largest times of the
 * rounds.
 */
void report_json(const struct cell *cell, FILE *out);

/*
 * Print the result of each target ("bar") whose values were measured, and whether the result meets
 * the target.
 */
void report_bars(const struct table *table);

#endif
