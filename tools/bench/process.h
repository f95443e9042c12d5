/* SPDX-License-Identifier: MIT */
/* The kernel's figures about this process. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdint.h>

uint64_t process_resident_bytes(void);

/* Returns the context switches so far of every thread except the caller. */
uint64_t process_others_switches(void);

#endif
