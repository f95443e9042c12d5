/* SPDX-License-Identifier: MIT */
/*
 * Computes CRC-32C (Castagnoli, the polynomial of iSCSI, RFC 3720). CRC-32C finds every burst of
 * errors up to 32 bits, and every three flipped bits in a record of the journal. Any thread may
 * call the functions, which take no locks.
 */
#ifndef JOURNAL_CRC32C_H
#define JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the CRC of a text followed by `count` bytes. `before` is the CRC of the text, or 0 if the
 * text is empty.
 */
uint32_t crc32c(uint32_t before, const void *bytes, size_t count);

/*
 * Returns the value of `before` for which crc32c(before, bytes, count) returns `after`. Exactly one
 * such value exists, because for fixed bytes crc32c() is a bijection of `before`. crc32c_before()
 * is slow.
 */
uint32_t crc32c_before(uint32_t after, const void *bytes, size_t count);

#endif
