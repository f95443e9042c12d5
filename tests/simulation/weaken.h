/* SPDX-License-Identifier: MIT */
/* Makes one access of the library weaker than its source says, for tools/run-orders. */
#ifndef SIMULATION_WEAKEN_H
#define SIMULATION_WEAKEN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * With this in place of an order, a read-modify-write that changes nothing becomes a seq_cst load.
 */
#define WEAKEN_LOAD 100

/*
 * Read "file.c:12:ORDER", which names the ordered accesses in a line and their weaker order. ORDER
 * is relaxed, acquire, release, acq_rel or load. Returns false if the text has another form.
 */
bool weaken_parse(const char *what);

/* Returns whether an access is weakened in this run. */
extern bool weaken_asked;

/* Returns the order to use for the access at simulation_line. */
int weaken_order_here(int order);

/* Returns the order to use if the source has `order`. */
static inline int weaken_order(int order)
{
	return weaken_asked ? weaken_order_here(order) : order;
}

/*
 * A missing order is noticed only if a load then returns an old store. So in half of the runs with
 * a weakened access, a load returns an old store by a chance of one half. This applies to a word
 * that the access stored, and to a thread that made the access or has just seen such a word.
 */
uint32_t weaken_stale_one_in(bool weak);
/* Returns whether the current thread is making the weakened access. */
bool weaken_made(void);
/* The current thread sees a store of the weakened access. */
void weaken_seen(void);
void weaken_begin(void);

/* Returns how often the order was changed, in this process. */
uint64_t weaken_times(void);

#endif
