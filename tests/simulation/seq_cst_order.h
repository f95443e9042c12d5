/* SPDX-License-Identifier: MIT */
/*
 * Keeps RC11's order of the seq_cst accesses. RC11 demands a partial order of these accesses,
 * "psc", without a cycle. If psc allows it, a seq_cst load may miss an earlier seq_cst store. Only
 * the last SC_EVENTS accesses are known. An access that is no longer known counts as preceding all
 * known accesses. If a store was made before the loading thread entered the library, a load sees
 * the store. Otherwise a call might miss the effect of a call that has already returned. The laws
 * forbid this.
 */
#ifndef SIMULATION_SEQ_CST_ORDER_H
#define SIMULATION_SEQ_CST_ORDER_H

#include "memory_models.h"

/* Number of seq_cst accesses that are remembered, each by a bit in a uint32_t. */
#define SC_EVENTS 32

/* The known seq_cst stores of one atomic word. */
struct sc_word {
	uint32_t floor;  /* number of the oldest store that a seq_cst load may return */
	uint32_t stores; /* a bit for each known seq_cst access that stored to the word */
};

void sc_begin(void);

/* The current actor begins a call of the library. */
void sc_call(void);

/*
 * The word's memory is used again. Forget the word's stores, since the numbers of its stores begin
 * at 0 again.
 */
void sc_forget(struct sc_word *word);

/*
 * The current actor accesses the word, or another object, at this address. The access may have any
 * memory order.
 */
void sc_access(const void *word);

/*
 * Returns whether a seq_cst load of the word may return store `number`. The stores of a word are
 * numbered from 0 on. `after` is the view that the thread has after the load.
 */
bool sc_may_read(const struct sc_word *word, uint32_t number, const struct memory_view *after);

/*
 * Record a seq_cst access of the word. If the argument `store` is true, the access is the store
 * with the number `number`. If `store` is false, the access is a load that returned the value of
 * this store.
 */
void sc_made(struct sc_word *word, uint32_t number, bool store);

#endif
