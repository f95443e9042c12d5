/* SPDX-License-Identifier: MIT */
/*
 * A pair's fields after the drawing in pair.h, by multiplication and division in place of the
 * library's functions.
 */
#ifndef UNIT_PAIR_FIELDS_H
#define UNIT_PAIR_FIELDS_H

#include "timer/pair.h"

struct parts {
	uint64_t deadline_ns;
	uint64_t generation;
	uint64_t kept, slack, periodic, claimed;
	uint64_t phase;
};

static inline struct pair parts_pair(struct parts parts)
{
	return (struct pair){
		.deadline_ns = parts.deadline_ns,
		.state = parts.generation * 67108864 + parts.kept * 64 + parts.slack * 32 +
		         parts.periodic * 16 + parts.claimed * 8 + parts.phase,
	};
}

static inline struct parts parts_of(struct pair pair)
{
	return (struct parts){
		.deadline_ns = pair.deadline_ns,
		.generation = pair.state / 67108864,
		.kept = pair.state / 64 % 2,
		.slack = pair.state / 32 % 2,
		.periodic = pair.state / 16 % 2,
		.claimed = pair.state / 8 % 2,
		.phase = pair.state % 8,
	};
}

#endif
