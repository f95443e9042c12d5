/* SPDX-License-Identifier: MIT */
/* Measurements of subjects that are separate programs. */
#ifndef BENCH_SUBJECT_GO_H
#define BENCH_SUBJECT_GO_H

#include "bench.h"

void subject_go_measure(const struct workload *workload, const struct run *run,
                        struct result *result);

#endif
