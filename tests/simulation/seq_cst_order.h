/* SPDX-License-Identifier: MIT */
/*
 * Keeps RC11's partial order of the seq_cst accesses, psc, which must have no cycle. A seq_cst load
 * may miss an earlier seq_cst store if that makes no cycle. Only the last SC_EVENTS accesses are
 * known; forgotten ones count as being before them.
 *
 * A load sees what was stored before its thread entered the library, because the laws promise that
 * a call sees the effects of calls that had returned before.
 */
#ifndef SIMULATION_SEQ_CST_ORDER_H
#define SIMULATION_SEQ_CST_ORDER_H

#include "memory_models.h"

/* as many as a uint32_t has bits */
#define SC_EVENTS 32

struct sc_word {
	uint32_t floor;  /* number of the oldest store that a seq_cst load may return */
	uint32_t stores; /* a bit for each known seq_cst access that stored to the word */
};

void sc_begin(void);

void sc_call(void);

/* Its memory is used again, and its stores are numbered from 0 again. */
void sc_forget(struct sc_word *word);

/* The current actor accesses an atomic word, in any memory order, or an object like a lock. */
void sc_access(const void *word);

/* May a seq_cst load return store `number` (from 0)? `after` is the thread's view afterwards. */
bool sc_may_read(const struct sc_word *word, uint32_t number, const struct memory_view *after);

/* Records a seq_cst access: the store with this number, or a load that returned that store. */
void sc_made(struct sc_word *word, uint32_t number, bool store);

#endif
