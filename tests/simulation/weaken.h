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

/* Is an access to be made weaker? */
extern bool weaken_asked;

/* Returns the order of the access at simulation_place, after what is to be weakened. */
int weaken_order_here(int order);

/* The order to be used where the source has this one. */
static inline int weaken_order(int order)
{
	return weaken_asked ? weaken_order_here(order) : order;
}

/* How often it was another, in this process. */
uint64_t weaken_times(void);

#endif
