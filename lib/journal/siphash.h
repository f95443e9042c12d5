/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3 of a caller's bytes: without the seed, keys that meet in one bucket cannot be made
 * up. Pure.
 */
#ifndef JOURNAL_SIPHASH_H
#define JOURNAL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash_bytes(const uint64_t seed[2], const void *bytes, size_t count);

#endif
