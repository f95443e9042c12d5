/* SPDX-License-Identifier: MIT */
/*
 * Computes CRC-32C (Castagnoli, the polynomial of iSCSI, RFC 3720). CRC-32C finds every burst of
 * errors up to 32 bits, and every three flipped bits in a record of the journal. Any thread may
 * call; there are no locks.
 */
#ifndef JOURNAL_CRC32C_H
#define JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the CRC of a text followed by these bytes. `before` is the CRC of the text, 0 for an
 * empty text.
 */
uint32_t crc32c(uint32_t before, const void *bytes, size_t count);

/*
 * Returns the `before` for which crc32c() returns `after`. Exactly one `before` fits, because for
 * fixed bytes the CRC is a bijection of `before`. The function is slow.
 */
uint32_t crc32c_before(uint32_t after, const void *bytes, size_t count);

#endif
