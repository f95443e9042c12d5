/* SPDX-License-Identifier: MIT */
/*
 * A slot of the schedule, and where it is filed. A slot is an index into the arrays that wheel, run
 * and heap share. A timer of the hub or a timeout of a loop uses the slot. Pure: numbers only.
 */
#ifndef TIMERHUB_FILING_H
#define TIMERHUB_FILING_H

#include <stdint.h>

#define SLOT_NONE UINT32_MAX

/* Where a slot is filed. One thread alone reads and writes filings: the owner, or the loop's. */
struct timer_filing {
	uint32_t where; /* 0: nowhere; else in the wheel, the run or the heap, by its top bits */
	uint32_t place; /* low bits of the outbox place last given to it; the hub's */
};

/* The top bits of timer_filing.where; the rest is where in there. */
#define WHERE_WHEEL ((uint32_t)1 << 30)
#define WHERE_RUN ((uint32_t)2 << 30)
#define WHERE_HEAP ((uint32_t)3 << 30)
#define WHERE_MASK ((uint32_t)3 << 30)

/* A slot, and the instant that it is scheduled for. 12 bytes: each timer has one or two. */
struct timer_due {
	uint64_t at_ns;
	uint32_t slot;
} __attribute__((packed, aligned(4)));

#endif
