/* SPDX-License-Identifier: MIT */
/* What the kernel says about this process. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdint.h>

uint64_t process_resident_bytes(void);

/* Context switches so far of every thread but this one. */
uint64_t process_others_switches(void);

#endif
