/* SPDX-License-Identifier: MIT */
/* Makes one measurement in a process of its own. */
#ifndef BENCH_MEASURE_IN_CHILD_H
#define BENCH_MEASURE_IN_CHILD_H

#include "workload.h"

/*
 * Measure the workload. Returns false if the measurement failed or took too long. The measuring
 * process prints the reason.
 */
bool measure(const struct workload *workload, const struct run *run, struct result *ret_result);

#endif
