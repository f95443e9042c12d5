/* SPDX-License-Identifier: MIT */
/*
 * The order of seq_cst accesses in RC11: a partial order, "psc", without a cycle. A seq_cst load
 * may miss an earlier seq_cst store if psc allows it. Only the last SC_EVENTS accesses are known.
 * An older access counts as preceding all known accesses. A load does not miss a store made before
 * its call began, since the laws are about calls that follow each other.
 */
#ifndef SIMULATION_SEQ_CST_ORDER_H
#define SIMULATION_SEQ_CST_ORDER_H

#include "memory_models.h"

/* Number of known accesses. Each known access has a bit in a word of 64 bits. */
#define SC_EVENTS 32

/* State of each atomic word, found by its address. */
struct sc_word {
	uint32_t floor;  /* no store older than this may be read */
	uint32_t stores; /* a bit for each known event that stored to the word */
};

void sc_begin(void);

/* The current actor begins a call. */
void sc_call(void);

/* The word's memory is used again, so its stores are counted from 0. */
void sc_forget(struct sc_word *word);

/* The current actor accesses the word or another object at this address, with any memory order. */
void sc_access(const void *word);

/*
 * Returns whether a seq_cst load of the word may return store `number`, after which the thread's
 * view is `after`. The word's stores are numbered from 0 on.
 */
bool sc_may_read(const struct sc_word *word, uint32_t number, const struct memory_view *after);

/* Record a seq_cst access, which loaded store `number` or made store `number`. */
void sc_made(struct sc_word *word, uint32_t number, bool store);

#endif
