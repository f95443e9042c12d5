/* SPDX-License-Identifier: MIT */
/* Reads and writes little-endian numbers at any address, on every machine. */
#ifndef JOURNAL_LITTLE_H
#define JOURNAL_LITTLE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t little_get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static inline uint64_t little_get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

static inline void little_put32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static inline void little_put64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

#endif
