/* SPDX-License-Identifier: MIT */
/*
 * By eight tables, eight bytes a step (Kounavis and Berry, "A systematic approach to building high
 * performance software-based CRC generators", 2005), filled by a constructor. tests/journal
 * compares with a CRC bit by bit.
 */
#include "journal/crc32c.h"

#include "journal/little.h"

#define POLYNOMIAL_REVERSED UINT32_C(0x82f63b78)
#define STEP_BYTES 8

/* crc32c_tables[k][b]: the CRC of byte b followed by k zero bytes. */
static uint32_t crc32c_tables[STEP_BYTES][256];

__attribute__((constructor)) static void crc32c_fill_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL_REVERSED : 0);
		crc32c_tables[0][byte] = crc;
	}
	for (int zeros = 1; zeros < STEP_BYTES; zeros++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = crc32c_tables[zeros - 1][byte];

			crc32c_tables[zeros][byte] = (crc >> 8) ^ crc32c_tables[0][crc & 0xff];
		}
}

static uint32_t crc32c_step(uint32_t crc, const uint8_t *at)
{
	uint64_t word = little_get64(at) ^ crc;

	return crc32c_tables[7][word & 0xff] ^ crc32c_tables[6][word >> 8 & 0xff] ^
	       crc32c_tables[5][word >> 16 & 0xff] ^ crc32c_tables[4][word >> 24 & 0xff] ^
	       crc32c_tables[3][word >> 32 & 0xff] ^ crc32c_tables[2][word >> 40 & 0xff] ^
	       crc32c_tables[1][word >> 48 & 0xff] ^ crc32c_tables[0][word >> 56];
}

uint32_t crc32c(uint32_t before, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	uint32_t crc = ~before;

	for (; count >= STEP_BYTES; count -= STEP_BYTES, at += STEP_BYTES)
		crc = crc32c_step(crc, at);
	for (; count > 0; count--, at++)
		crc = (crc >> 8) ^ crc32c_tables[0][(crc ^ *at) & 0xff];
	return ~crc;
}

uint32_t crc32c_before(uint32_t after, const void *bytes, size_t count)
{
	const uint8_t *begin = bytes;
	uint32_t crc = ~after;

	while (count-- > 0) {
		/*
		 * undoes a byte's eight steps: the polynomial's highest bit is set, so a 1 was
		 * shifted out if the highest bit is 1
		 */
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 31 != 0 ? (crc ^ POLYNOMIAL_REVERSED) << 1 | 1 : crc << 1;
		crc ^= begin[count];
	}
	return ~crc;
}
