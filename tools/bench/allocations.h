/* SPDX-License-Identifier: MIT */
/* Counts the calls of malloc, calloc and realloc in the process. */
#ifndef BENCH_ALLOCATIONS_H
#define BENCH_ALLOCATIONS_H

#include <stdint.h>

/* Start to count, from 0. While nothing is counted, an allocation costs one additional load. */
void allocations_start(void);
uint64_t allocations_count(void);

#endif
