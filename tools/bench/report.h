/* SPDX-License-Identifier: MIT */
/* Prints results: as tables, as JSON lines, and against timerhub's own bars. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "table.h"

/* Print the cells [from, to), which share workload, timers and threads, as a table. */
void report_group(const struct table *table, unsigned from, unsigned to);

/* Print a cell as a line of JSON: medians, and the smallest and largest times of the rounds. */
void report_json(const struct cell *cell, FILE *out);

/* Print every bar with results: the ratio, and whether it is met. */
void report_bars(const struct table *table);

#endif
