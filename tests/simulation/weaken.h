/* SPDX-License-Identifier: MIT */
/* Makes one access of the library weaker than its source has it: tools/run-orders. */
#ifndef SIMULATION_WEAKEN_H
#define SIMULATION_WEAKEN_H

#include <stdbool.h>
#include <stdint.h>

/* In place of an order: a read-modify-write that changes nothing is a seq_cst load. */
#define WEAKEN_LOAD 100

/*
 * "file.c:12:ORDER": the ordered accesses in that line, ORDER one of relaxed, acquire, release,
 * acq_rel, load. False: not understood.
 */
bool weaken_parse(const char *what);

/* The order to be used where the source has this one. */
int weaken_order(int order);

/* How often it was another, in this process. */
uint64_t weaken_times(void);

#endif
