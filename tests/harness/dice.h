/* SPDX-License-Identifier: MIT */
/* Seeded random numbers, fast enough for every switch between simulated threads. */
#ifndef TESTS_DICE_H
#define TESTS_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
	uint64_t state;
};

/*
 * Returns 64 random bits (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
 * generators", 2014).
 */
static inline uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/*
 * Returns dice that begin with a seed. Neighbouring seeds give different sequences. For one seed,
 * so do different salts below 2^16.
 */
static inline struct dice dice_seeded(uint64_t seed, uint64_t salt)
{
	struct dice dice = { .state = seed ^ salt << 48 };

	dice.state = dice_roll(&dice);
	return dice;
}

/* Returns a random number from 0 to `bound` - 1. It multiplies, because a division is slower. */
static inline uint64_t dice_below(struct dice *dice, uint64_t bound)
{
	uint64_t roll = dice_roll(dice);

	if (bound <= UINT64_C(1) << 32)
		return (roll >> 32) * bound >> 32;
	return (uint64_t)(((unsigned __int128)roll * bound) >> 64);
}

static inline bool dice_one_in(struct dice *dice, uint64_t bound)
{
	return dice_below(dice, bound) == 0;
}

/*
 * Returns a random number below 2^bits, where `bits` is at most 64. Each length from 0 to `bits`
 * bits is equally likely.
 */
static inline uint64_t dice_magnitude(struct dice *dice, unsigned bits)
{
	unsigned used = (unsigned)dice_below(dice, bits + 1);

	return used > 0 ? dice_roll(dice) >> (64 - used) : 0;
}

#endif
