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

struct spill_map {
	/*
	 * Level 0 has a bit for each slot. Each higher level has a bit for each word of the level
	 * below.
	 */
	atomic_u64 *words[INBOX_LEVELS];
	uint32_t top_words; /* number of words of the top level */
	/*
	 * By level: the bits that the owner has taken from a word, but not handled yet. Only the
	 * owner uses this cache line.
	 */
	_Alignas(CACHE_LINE_BYTES) uint64_t bits[INBOX_LEVELS];
	uint32_t word[INBOX_LEVELS]; /* by level: the index of that word */
};

/* Returns how many words are needed for a map with `capacity` slots, on all levels together. */
uint64_t map_words(uint32_t capacity);

/* Sets up an empty map. `words` has map_words(capacity) elements, which must be zero. */
void map_init(struct spill_map *map, uint32_t capacity, atomic_u64 *words);

/*
 * Puts a slot into the map by setting its bit on each level, bottom first. Returns false if the
 * bottom bit was set before this call: then the owner is going to take the slot.
 */
bool map_set(const struct spill_map *map, uint32_t slot);

/*
 * Tells whether a slot is in the map: its bits are set on all levels. Then the owner is going to
 * take it, and nobody needs to push it.
 */
bool map_has(const struct spill_map *map, uint32_t slot);

/* ---- calls of the owner ---- */

/*
 * Begins a walk over the whole map, in which map_take() takes out the slots. The walk takes each
 * word at most once, so it ends however fast other threads set bits.
 */
void map_begin(struct spill_map *map);

/*
 * Takes up to `max` slots out of the map, and returns how many. If it returns fewer than `max`, the
 * walk that map_begin() has begun is at its end.
 */
unsigned map_take(struct spill_map *map, uint32_t *slots, unsigned max);

/*
 * Tells whether the map is empty. A slot counts only when its bits are set on all levels, so a push
 * that has just begun does not count.
 */
bool map_empty(const struct spill_map *map);

#endif
