/* SPDX-License-Identifier: MIT */
/*
 * Loads and stores words of four or eight bytes, and pairs of words, in the machine's real memory,
 * whatever their type.
 */
#ifndef SIMULATION_RAW_MEMORY_H
#define SIMULATION_RAW_MEMORY_H

#include <stdint.h>

typedef uint32_t __attribute__((may_alias)) word_u32;
typedef uint64_t __attribute__((may_alias)) word_u64;

static inline uint64_t word_load(const volatile void *word, unsigned bytes)
{
	return bytes == sizeof(uint64_t) ? *(const volatile word_u64 *)word
	                                 : *(const volatile word_u32 *)word;
}

static inline void word_store(volatile void *word, unsigned bytes, uint64_t value)
{
	if (bytes == sizeof(uint64_t))
		*(volatile word_u64 *)word = value;
	else
		*(volatile word_u32 *)word = (uint32_t)value;
}

static inline volatile void *pair_high(volatile void *words)
{
	return (volatile char *)words + sizeof(uint64_t);
}

static inline unsigned __int128 pair_load(volatile void *words)
{
	return (unsigned __int128)word_load(pair_high(words), sizeof(uint64_t)) << 64 |
	       word_load(words, sizeof(uint64_t));
}

static inline void pair_store(volatile void *words, unsigned __int128 value)
{
	word_store(words, sizeof(uint64_t), (uint64_t)value);
	word_store(pair_high(words), sizeof(uint64_t), (uint64_t)(value >> 64));
}

#endif
