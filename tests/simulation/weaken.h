/* SPDX-License-Identifier: MIT */
/*
 * Gives the atomic accesses in one line of the library a weaker memory order than the source has,
 * for tools/run-orders.
 */
#ifndef SIMULATION_WEAKEN_H
#define SIMULATION_WEAKEN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * WEAKEN_LOAD stands for a memory order. An access with WEAKEN_LOAD becomes a seq_cst load. The
 * access must be a read-modify-write that does not change the value.
 */
#define WEAKEN_LOAD 100

/*
 * Parse `what`, which has the form FILE:LINE:ORDER, for example "file.c:12:relaxed". From now on
 * each atomic access in line LINE of FILE has the memory order ORDER. An access that is relaxed in
 * the source stays relaxed. ORDER is one of the words relaxed, acquire, release, acq_rel, seq_cst
 * and load. Returns false if `what` does not have the form FILE:LINE:ORDER.
 */
bool weaken_parse(const char *what);

/* True if weaken_parse() has accepted the option --weaken. */
extern bool weaken_asked;

/* Returns the order that the access at simulation_line gets in place of `order`. */
int weaken_order_here(int order);

/* Returns the memory order that an access gets if the source says `order`. */
static inline int weaken_order(int order)
{
	return weaken_asked ? weaken_order_here(order) : order;
}

/*
 * Returns a number n. If a load may return an old store, it does so with the probability 1 / n. A
 * weakened order is noticed only if a later load returns an old store. In half of the runs with a
 * weakened access, weaken_stale_one_in() therefore returns 2 for these loads:
 *
 * - Loads of a word whose newest store was made by the weakened access.
 * - The next loads of a thread after the thread made the weakened access.
 * - The next loads of a thread after the thread loaded a value stored by the weakened access.
 */
uint32_t weaken_stale_one_in(bool weak);
/* Returns whether the access in progress is the weakened access. */
bool weaken_made(void);
/*
 * Record that the current thread makes the weakened access, or loads a value that this access has
 * stored.
 */
void weaken_seen(void);
void weaken_begin(void);

/* Returns the number of times that this process has made the weakened access. */
uint64_t weaken_times(void);

#endif
