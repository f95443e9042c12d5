/* SPDX-License-Identifier: MIT */
/*
 * Declares a slot of the schedule, and the position of the slot's schedule entry. A slot is an
 * index into the arrays that wheel, run and heap share; a hub's timer or a loop's timeout uses it.
 * Pure: numbers only.
 */
#ifndef TIMERHUB_ENTRY_H
#define TIMERHUB_ENTRY_H

#include <stdint.h>

#define SLOT_NONE UINT32_MAX

/* Where a slot's schedule entry is. Only one thread uses it: the owner or the loop's. */
struct timer_filing {
	uint32_t where; /* 0: not scheduled; else wheel, run or heap, and the position in it */
	uint32_t place; /* hub: low bits of the slot's latest outbox index */
};

/* The top bits of timer_filing.where. The other bits are the position in that container. */
#define WHERE_WHEEL ((uint32_t)1 << 30)
#define WHERE_RUN ((uint32_t)2 << 30)
#define WHERE_HEAP ((uint32_t)3 << 30)
#define WHERE_MASK ((uint32_t)3 << 30)

/* A schedule entry: a slot, and the time at which it is scheduled. 12 bytes, not 16. */
struct timer_due {
	uint64_t at_ns;
	uint32_t slot;
} __attribute__((packed, aligned(4)));

#endif
