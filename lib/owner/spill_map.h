/* SPDX-License-Identifier: MIT */
/*
 * The spill map of the inbox: a bit for each slot of the hub, and two levels of summary bits above.
 * It takes what finds its lane full. Any thread sets bits, and the owner takes them.
 */
#ifndef TIMERHUB_SPILL_MAP_H
#define TIMERHUB_SPILL_MAP_H

#include "base/atomic.h"
#include "base/bits.h"
#include "timer/pair.h"

#define INBOX_LEVELS 3 /* so the top level of the map has at most 256 words */
#ifndef INBOX_WORD
#define INBOX_WORD 64u /* how many bits of a word of the map are in use */
#endif
_Static_assert(INBOX_WORD < 64 || TIMER_SLOTS_MAX / (INBOX_WORD * INBOX_WORD * INBOX_WORD) < 256,
               "the owner reads the whole top level in each pass");

struct spill_map {
	/* Level 0 has a bit for each slot, the others one for each word of the level below. */
	atomic_u64 *words[INBOX_LEVELS];
	uint32_t top_words; /* number of words of the top level */
	/* The owner's walk over the map: on each level the bits still to do, and of which word. */
	_Alignas(CACHE_LINE_BYTES) uint64_t bits[INBOX_LEVELS];
	uint32_t word[INBOX_LEVELS];
};

/* Returns how many words a map for so many slots has on all levels. */
uint64_t map_words(uint32_t capacity);

/* Begins an empty map in map_words() zeroed words. */
void map_init(struct spill_map *map, uint32_t capacity, atomic_u64 *words);

/*
 * Sets the bits of a slot from the bottom level to the top. Returns false if the slot's own bit was
 * set already, in which case the owner is going to see it anyway.
 */
bool map_set(const struct spill_map *map, uint32_t slot);

/* Tells whether a slot waits in the map, so that it need not be pushed. */
bool map_has(const struct spill_map *map, uint32_t slot);

/* ---- calls of the owner ---- */

/* Begins a walk over the map. Each word is taken at most once in it, however fast producers are. */
void map_begin(struct spill_map *map);

/* Takes up to `max` slots, and returns how many. Fewer than `max` mean that the walk has ended. */
unsigned map_take(struct spill_map *map, uint32_t *slots, unsigned max);

/* Tells whether no slot waits, except those whose thread has not set all bits yet. */
bool map_empty(const struct spill_map *map);

#endif
