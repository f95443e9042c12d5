/* SPDX-License-Identifier: MIT */
/* Reads figures of the kernel about this process. */
#ifndef BENCH_PROCESS_USAGE_H
#define BENCH_PROCESS_USAGE_H

#include <stdint.h>

uint64_t process_resident_bytes(void);

/* Returns the number of context switches of all threads except the calling thread. */
uint64_t process_others_switches(void);

#endif
