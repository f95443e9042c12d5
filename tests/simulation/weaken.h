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

/*
 * What is no longer ordered is noticed only if a load then sees too little. So in half of the runs
 * loads do so every other time, while an access is weaker: of a word that was stored by it, and in
 * a thread that made it, or has just seen such a word.
 */
uint32_t weaken_stale_one_in(bool weak);
/* Is the access weaker that the current thread is making? */
bool weaken_made(void);
/* The current thread sees what such an access has stored. */
void weaken_seen(void);
void weaken_begin(void);

/* How often it was another, in this process. */
uint64_t weaken_times(void);

#endif
