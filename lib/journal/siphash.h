/* SPDX-License-Identifier: MIT */
/*
 * Computes SipHash-1-3 of a key with a secret seed. An attacker without the seed cannot choose keys
 * that all hash to one bucket.
 */
#ifndef JOURNAL_SIPHASH_H
#define JOURNAL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash_bytes(const uint64_t seed[2], const void *bytes, size_t count);

#endif
