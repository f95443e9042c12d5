/* SPDX-License-Identifier: MIT */
/* Prints results: for people, as JSON lines, and against the bars that timerhub set itself. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "table.h"

/* The cells [from, to), which share workload, timers and threads, as a table. */
void report_group(const struct table *table, unsigned from, unsigned to);

/* One cell as a line of JSON: medians, and the rounds' least and greatest times. */
void report_json(const struct cell *cell, FILE *out);

/* Every bar whose results are there: the ratio, and whether it is met. */
void report_bars(const struct table *table);

#endif
