/* SPDX-License-Identifier: MIT */
/* SipHash-1-3 with a secret seed: nobody can choose keys that all hash to one bucket. */
#ifndef JOURNAL_SIPHASH_H
#define JOURNAL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash_bytes(const uint64_t seed[2], const void *bytes, size_t count);

#endif
