/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C (Castagnoli, the polynomial of iSCSI, RFC 3720): finds every burst of errors up to 32
 * bits, and every three flipped bits in a record of ours. Any thread, no locks.
 */
#ifndef JOURNAL_CRC32C_H
#define JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of what `before` is the CRC of (0: nothing), followed by these bytes. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t count);

/*
 * The inverse: the CRC of what came before these bytes, if `after` is the CRC of all. For a fixed
 * number of bytes a CRC is a bijection of what it goes on from. Slow.
 */
uint32_t crc32c_before(uint32_t after, const void *bytes, size_t count);

#endif
