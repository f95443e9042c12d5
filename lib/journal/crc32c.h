/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C (Castagnoli, iSCSI's, RFC 3720): finds every burst of up to 32 bits, and every three
 * flipped bits in a record. Any thread.
 */
#ifndef JOURNAL_CRC32C_H
#define JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of a text and then `count` bytes; `before` is the text's CRC, or 0. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t count);

/*
 * The `before` for which crc32c(before, bytes, count) is `after`: one exists, since crc32c() is a
 * bijection. Slow.
 */
uint32_t crc32c_before(uint32_t after, const void *bytes, size_t count);

#endif
