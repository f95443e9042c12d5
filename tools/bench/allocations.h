/* SPDX-License-Identifier: MIT */
/* Counts the calls of malloc, calloc and realloc in the process. */
#ifndef BENCH_ALLOCATIONS_H
#define BENCH_ALLOCATIONS_H

#include <stdint.h>

/*
 * Begin to count the calls, from 0. Before allocations_start() is called, malloc(), calloc() and
 * realloc() cost one additional load.
 */
void allocations_start(void);
uint64_t allocations_count(void);

#endif
