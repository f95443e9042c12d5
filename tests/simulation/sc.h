/* SPDX-License-Identifier: MIT */
/*
 * The order of seq_cst accesses, as RC11 has it: a partial one, "psc", that must have no cycle. So
 * a seq_cst load may miss a seq_cst store that was made before it, if nothing that psc orders says
 * otherwise. The last so many accesses are known; older ones count as before all that follow. Nor
 * does a load miss a store made before its call began, since the laws speak of calls one after the
 * other.
 */
#ifndef SIMULATION_SC_H
#define SIMULATION_SC_H

#include "memory.h"

/* So many accesses are known: a bit of a word for each. */
#define SC_EVENTS 32

/* Of each atomic word, known by this address. */
struct sc_word {
	uint32_t floor;  /* no store older than this may be read: a newer one is forgotten */
	uint32_t stores; /* bit per event that is known yet and that stored to it */
};

void sc_begin(void);

/* The current actor begins a call. */
void sc_call(void);

/* The word begins a new life: its stores are counted from 0 on again. */
void sc_forget(struct sc_word *word);

/* The current actor accesses this word, or anything else by its address, in whatever order. */
void sc_access(const void *word);

/*
 * May a seq_cst load of the word return store `number`, after which the thread's view is `after`?
 * The word's store n is its n-th from 0 on.
 */
bool sc_may_read(const struct sc_word *word, uint32_t number, const struct memory_view *after);

/* A seq_cst access was made: a load of store `number`, or store `number`. */
void sc_made(struct sc_word *word, uint32_t number, bool store);

#endif
