/* SPDX-License-Identifier: MIT */
/* Small arithmetic: the positions of bits, powers of two, and sums that cannot overflow. */
#ifndef TIMERHUB_BITS_H
#define TIMERHUB_BITS_H

#include <stdint.h>

#define CACHE_LINE_BYTES 64

/* Returns the position of the lowest bit that is set. The word must not be 0. */
static inline unsigned bits_lowest(uint64_t word)
{
	return (unsigned)__builtin_ctzll(word);
}

/* Returns the position of the highest bit that is set. The word must not be 0. */
static inline unsigned bits_highest(uint64_t word)
{
	return 63u - (unsigned)__builtin_clzll(word);
}

/* Returns the smallest power of two that is at least `value`, which must be at most 2^63. */
static inline uint64_t bits_power_of_two(uint64_t value)
{
	return value <= 1 ? 1 : (uint64_t)1 << (bits_highest(value - 1) + 1);
}

static inline uint64_t u64_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns a + b, or UINT64_MAX if the sum would overflow. */
static inline uint64_t u64_add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum = a + b;

	return sum < a ? UINT64_MAX : sum;
}

#endif
