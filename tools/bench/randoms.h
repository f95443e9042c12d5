/* SPDX-License-Identifier: MIT */
/*
 * Random numbers by xorshift64*. Each thread has a generator of its own. One number takes two
 * nanoseconds.
 */
#ifndef BENCH_RANDOMS_H
#define BENCH_RANDOMS_H

#include <stdint.h>

struct randoms {
	uint64_t state; /* state of the generator, never 0 */
};

static inline struct randoms randoms_from(uint64_t seed)
{
	return (struct randoms){ .state = (seed + 1) * 0x9e3779b97f4a7c15u };
}

static inline uint32_t randoms_next(struct randoms *randoms)
{
	uint64_t x = randoms->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	randoms->state = x;
	return (uint32_t)((x * 0x2545f4914f6cdd1du) >> 32);
}

/* Returns a uniform random number in [0, limit). */
static inline uint32_t randoms_below(struct randoms *randoms, uint32_t limit)
{
	return (uint32_t)(((uint64_t)randoms_next(randoms) * limit) >> 32);
}

/* Returns a uniform random number in [from, to). */
static inline uint64_t randoms_between(struct randoms *randoms, uint64_t from, uint64_t to)
{
	return from + (uint64_t)(((unsigned __int128)(to - from) * randoms_next(randoms)) >> 32);
}

#endif
