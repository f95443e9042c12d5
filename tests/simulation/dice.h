/* SPDX-License-Identifier: MIT */
/* Seeded dice: small and fast, since the simulation rolls them at every switch. */
#ifndef SIMULATION_DICE_H
#define SIMULATION_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
	uint64_t state;
};

/* G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
static inline uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Neighbouring seeds do not share a sequence, nor do two salts of one seed. */
static inline struct dice dice_new(uint64_t seed, uint64_t salt)
{
	struct dice dice = { .state = seed ^ salt << 48 };

	dice.state = dice_roll(&dice);
	return dice;
}

/* From 0 to bound - 1; `bound` from 1 to 2^32. A multiplication instead of a division. */
static inline uint32_t dice_below(struct dice *dice, uint64_t bound)
{
	return (uint32_t)((dice_roll(dice) >> 32) * bound >> 32);
}

static inline bool dice_one_in(struct dice *dice, uint32_t bound)
{
	return dice_below(dice, bound) == 0;
}

/* Below 2^bits, every magnitude as likely as the next; `bits` at most 63. */
static inline uint64_t dice_magnitude(struct dice *dice, unsigned bits)
{
	unsigned used = dice_below(dice, bits + 1);

	return used > 0 ? dice_roll(dice) >> (64 - used) : 0;
}

#endif
