/* SPDX-License-Identifier: MIT */
/*
 * A state word taken apart: from the drawing in word.h, by multiplication and division, and without
 * a function of the library.
 */
#ifndef UNIT_PARTS_H
#define UNIT_PARTS_H

#include <stdint.h>

struct parts {
	uint64_t ticks;
	uint64_t tag;
	uint64_t pushed;
	uint64_t inbox;
	uint64_t phase;
};

static inline uint64_t parts_word(struct parts parts)
{
	return parts.ticks * 128 + parts.tag * 16 + parts.pushed * 8 + parts.inbox * 4 +
	       parts.phase;
}

static inline struct parts parts_of(uint64_t word)
{
	return (struct parts){ .ticks = word / 128,
		               .tag = word / 16 % 8,
		               .pushed = word / 8 % 2,
		               .inbox = word / 4 % 2,
		               .phase = word % 4 };
}

#endif
