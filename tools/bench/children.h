/* SPDX-License-Identifier: MIT */
/* Processes beside the measuring process. They end with it, and share memory with it. */
#ifndef BENCH_CHILDREN_H
#define BENCH_CHILDREN_H

#include <stdint.h>

/* Fork `count` processes; each calls body() with its number and ends. */
void children_begin(unsigned count, void (*body)(unsigned child));

/* Wait until `count` processes have ended. If one failed, end the measurement. */
void children_await(unsigned count);

/* Returns zeroed memory that processes share which are forked later. */
void *children_share(uint64_t bytes);

#endif
