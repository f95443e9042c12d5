/* SPDX-License-Identifier: MIT */
/*
 * Gives the atomic accesses in one line of the library a weaker memory order, for tools/run-orders.
 */
#ifndef SIMULATION_WEAKEN_H
#define SIMULATION_WEAKEN_H

#include <stdbool.h>
#include <stdint.h>

/* A read-modify-write that changes nothing becomes a seq_cst load. */
#define WEAKEN_LOAD 100

/*
 * FILE:LINE:ORDER, as in "file.c:12:relaxed": each access of the line that is not relaxed gets it
 * (relaxed, acquire, release, acq_rel, seq_cst, load). False: another form.
 */
bool weaken_parse(const char *what);

/* --weaken was accepted */
extern bool weaken_asked;

/* Returns the memory order of the access at simulation_line: `order`, or the weaker one. */
int weaken_order_here(int order);

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
bool weaken_made(void);
/* The current actor makes the weakened access, or loads a value that this access has stored. */
void weaken_seen(void);
void weaken_begin(void);

/* In this process. */
uint64_t weaken_times(void);

#endif
