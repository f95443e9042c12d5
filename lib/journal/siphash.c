/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012), one round
 * a word and three at the end, as usual for hash tables. test_format.c compares with the paper.
 */
#include "journal/siphash.h"

#include <string.h>

#include "journal/little.h"

#define WORD_BYTES 8
#define FINAL_ROUNDS 3

struct siphash {
	uint64_t v[4];
};

static uint64_t siphash_rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void siphash_round(uint64_t *v)
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotate(v[1], 13) ^ v[0];
	v[3] = siphash_rotate(v[3], 16) ^ v[2];
	v[0] = siphash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotate(v[1], 17) ^ v[2];
	v[3] = siphash_rotate(v[3], 21) ^ v[0];
	v[2] = siphash_rotate(v[2], 32);
}

static void siphash_word(struct siphash *hash, uint64_t word)
{
	hash->v[3] ^= word;
	siphash_round(hash->v);
	hash->v[0] ^= word;
}

uint64_t siphash_bytes(const uint64_t seed[2], const void *bytes, size_t count)
{
	struct siphash hash = {
		{ seed[0] ^ UINT64_C(0x736f6d6570736575), seed[1] ^ UINT64_C(0x646f72616e646f6d),
		  seed[0] ^ UINT64_C(0x6c7967656e657261), seed[1] ^ UINT64_C(0x7465646279746573) }
	};
	uint8_t last[WORD_BYTES] = { 0 };
	const uint8_t *at = bytes;
	size_t left = count;

	for (; left >= WORD_BYTES; left -= WORD_BYTES, at += WORD_BYTES)
		siphash_word(&hash, little_get64(at));
	if (left > 0)
		memcpy(last, at, left);
	last[WORD_BYTES - 1] = (uint8_t)count;
	siphash_word(&hash, little_get64(last));
	hash.v[2] ^= 0xff;
	for (int i = 0; i < FINAL_ROUNDS; i++)
		siphash_round(hash.v);
	return hash.v[0] ^ hash.v[1] ^ hash.v[2] ^ hash.v[3];
}
