/* SPDX-License-Identifier: MIT */
/*
 * Declares a slot of the schedule, and the position of the slot's schedule entry. A slot is the
 * index of a hub's timer or of a loop's timeout.
 */
#ifndef TIMERHUB_ENTRY_H
#define TIMERHUB_ENTRY_H

#include <stdint.h>

#define SLOT_NONE UINT32_MAX

/* The position of a slot's schedule entry, used only by the owner or the loop's thread. */
struct timer_filing {
	uint32_t where; /* 0: not scheduled; else wheel, run or heap, and the position in it */
	uint32_t place; /* in a hub: low bits of the outbox position of the slot's latest handle */
};

/* The top bits of timer_filing.where name the container, the other bits the position in it. */
#define WHERE_WHEEL ((uint32_t)1 << 30)
#define WHERE_RUN ((uint32_t)2 << 30)
#define WHERE_HEAP ((uint32_t)3 << 30)
#define WHERE_MASK ((uint32_t)3 << 30)

/* A schedule entry of 12 bytes: a slot, and the time at which the slot is scheduled. */
struct timer_due {
	uint64_t at_ns;
	uint32_t slot;
} __attribute__((packed, aligned(4)));

#endif
