/* SPDX-License-Identifier: MIT */
/*
 * The spill map is the part of the inbox that is used when a lane is full. It has a bit for each
 * slot of the hub, and two levels of summary bits above (spill_map.h).
 *
 * A producer, the thread that pushes a slot, sets the slot's bits from the bottom level to the top,
 * even if some are set already. The owner takes words from the top down. So a producer that is
 * stopped half-way hides nobody's slot, because whoever pushes another slot in the same words sets
 * all three bits too. A bit that is set already need not be set again, because the owner has yet to
 * take its word, and takes the words below after that.
 *
 * The owner stores the pair (the deadline and state of a timer) for each slot that it takes, even
 * if nothing in the pair changes. That is why a producer that finds its slot's bits still set may
 * rely on them. The producer has changed the pair before it looked at the bits. If the owner had
 * stored the pair first, the producer would have read what the owner stored, and would then have
 * seen that the bits were taken.
 *
 * map_has() reads from the bottom level to the top. If it finds a bit of a higher level set, the
 * owner takes the word below later than that, and so later than map_has() has read that word.
 *
 * map_walk() goes through all words of the top level. A bit that it takes from one of them names
 * the word to take next on the level below, and so down to level 0. If no bit is left on a level,
 * it goes up again.
 *
 * map_empty() reads only the top level. If a producer has not set its top bit yet, it will set it
 * later, and only then check whether it must wake the owner.
 *
 * The head of inbox.c says why the accesses are seq_cst.
 */
#include "owner/spill_map.h"

#include "base/invariant.h"
#include "base/test_point.h"

uint64_t map_words(uint32_t capacity)
{
	uint64_t total = 0, words = capacity;

	for (unsigned level = 0; level < INBOX_LEVELS; level++) {
		words = (words + INBOX_WORD - 1) / INBOX_WORD;
		total += words;
	}
	return total;
}

void map_init(struct spill_map *map, uint32_t capacity, atomic_u64 *words)
{
	uint32_t count = capacity;

	for (unsigned level = 0; level < INBOX_LEVELS; level++) {
		count = (count + INBOX_WORD - 1) / INBOX_WORD;
		map->words[level] = words;
		words += count;
	}
	map->top_words = count;
}

bool map_set(const struct spill_map *map, uint32_t slot)
{
	bool fresh = false;

	for (unsigned level = 0; level < INBOX_LEVELS; level++, slot /= INBOX_WORD) {
		atomic_u64 *word = &map->words[level][slot / INBOX_WORD];
		uint64_t bit = (uint64_t)1 << slot % INBOX_WORD;

		test_point(TEST_POINT_PUSH_AT_CELL);
		if ((u64_load_seq_cst(word) & bit) != 0)
			continue;
		(void)u64_fetch_or_seq_cst(word, bit);
		fresh |= level == 0;
	}
	return fresh;
}

/* Tells whether the bit with this index is set in `words`, which is one level of the map. */
static bool map_has_bit(const atomic_u64 *words, uint32_t index)
{
	uint64_t word = u64_load_seq_cst(&words[index / INBOX_WORD]);

	test_point(TEST_POINT_WAITS_READ_WORD);
	return (word >> index % INBOX_WORD & 1) != 0;
}

bool map_has(const struct spill_map *map, uint32_t slot)
{
	/*
	 * Read from the bottom level up, because the owner takes words from the top down. If a
	 * higher bit is set, the owner takes the word below later than it was read here.
	 */
	return map_has_bit(map->words[0], slot) && map_has_bit(map->words[1], slot / INBOX_WORD) &&
	       map_has_bit(map->words[2], slot / (INBOX_WORD * INBOX_WORD));
}

/*
 * Takes the lowest bit out of map->bits[level]. Returns the index of this bit in the whole level.
 */
static uint32_t map_pop(struct spill_map *map, unsigned level)
{
	uint32_t index;

	invariant(map->bits[level] != 0);
	index = map->word[level] * INBOX_WORD + bits_lowest(map->bits[level]);
	map->bits[level] &= map->bits[level] - 1;
	return index;
}

/*
 * If map->bits[0] is 0, loads into it the next word of level 0 that is not 0. Returns false at the
 * end of the map.
 */
static bool map_walk(struct spill_map *map)
{
	unsigned level = 0;

	while (map->bits[0] == 0) {
		atomic_u64 *word;

		if (level == INBOX_LEVELS - 1) {
			if (map->word[level] + 1 == map->top_words)
				return false;
			map->word[level]++;
		} else if (map->bits[level + 1] == 0) {
			level++;
			continue;
		} else {
			map->word[level] = map_pop(map, level + 1);
		}
		word = &map->words[level][map->word[level]];
		if (u64_load_seq_cst(word) != 0)
			map->bits[level] = u64_exchange_seq_cst(word, 0);
		if (map->bits[level] != 0 && level > 0)
			level--;
	}
	return true;
}

void map_begin(struct spill_map *map)
{
	map->word[INBOX_LEVELS - 1] = UINT32_MAX; /* before word 0 */
}

unsigned map_take(struct spill_map *map, uint32_t *slots, unsigned max)
{
	unsigned count = 0;

	while (count < max && map_walk(map))
		slots[count++] = map_pop(map, 0);
	return count;
}

bool map_empty(const struct spill_map *map)
{
	for (uint32_t i = 0; i < map->top_words; i++)
		if (u64_load_seq_cst(&map->words[INBOX_LEVELS - 1][i]) != 0)
			return false;
	return true;
}
