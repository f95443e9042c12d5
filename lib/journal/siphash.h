/* SPDX-License-Identifier: MIT */
/*
 * Computes SipHash-1-3 of a key with a secret seed. If an attacker does not know the seed, the
 * attacker cannot choose keys that all hash to one bucket. siphash_bytes() is a pure function.
 */
#ifndef JOURNAL_SIPHASH_H
#define JOURNAL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash_bytes(const uint64_t seed[2], const void *bytes, size_t count);

#endif
