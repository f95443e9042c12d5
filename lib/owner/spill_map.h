/* SPDX-License-Identifier: MIT */
/*
 * The spill map of the inbox: a bit for each slot of the hub, and two levels of summary bits above.
 * A push uses it if its lane, a ring buffer, is full. Any thread sets bits, and the owner takes
 * them.
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

/* Producers read the first fields. The rest, on another cache line, is only for the owner. */
struct spill_map {
	/* Level 0 has a bit for each slot. A higher level has a bit for each word below it. */
	atomic_u64 *words[INBOX_LEVELS];
	uint32_t top_words; /* number of words of the top level */
	/* What is left of the word that the owner's walk has reached on each level. */
	_Alignas(CACHE_LINE_BYTES) uint64_t bits[INBOX_LEVELS];
	uint32_t word[INBOX_LEVELS]; /* the index of that word */
};

/* Returns how many words are needed for a map with `capacity` slots, on all levels together. */
uint64_t map_words(uint32_t capacity);

/* Sets up an empty map. `words` has map_words(capacity) elements, which must be zero. */
void map_init(struct spill_map *map, uint32_t capacity, atomic_u64 *words);

/* Puts a slot into the map. Returns false if the slot was waiting there already. */
bool map_set(const struct spill_map *map, uint32_t slot);

/* Tells whether a slot waits in the map, so that nobody needs to push it. */
bool map_has(const struct spill_map *map, uint32_t slot);

/* ---- calls of the owner ---- */

/* Begins a walk over the map, which takes each word at most once and therefore ends. */
void map_begin(struct spill_map *map);

/* Takes up to `max` slots and returns how many. Fewer than `max` mean the walk's end. */
unsigned map_take(struct spill_map *map, uint32_t *slots, unsigned max);

/* Tells whether no slot waits in the map. A push that has just begun does not count. */
bool map_empty(const struct spill_map *map);

#endif
