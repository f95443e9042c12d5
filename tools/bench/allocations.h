/* SPDX-License-Identifier: MIT */
/* How many times malloc, calloc and realloc were called in the process. */
#ifndef BENCH_ALLOCATIONS_H
#define BENCH_ALLOCATIONS_H

#include <stdint.h>

/* Start to count, from 0. Until then nothing is counted, and it costs a load. */
void allocations_start(void);
uint64_t allocations_count(void);

#endif
