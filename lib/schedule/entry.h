/* SPDX-License-Identifier: MIT */
/*
 * A slot is the index of a hub's timer or a loop's timeout; here is where its schedule entry lies.
 */
#ifndef TIMERHUB_ENTRY_H
#define TIMERHUB_ENTRY_H

#include <stdint.h>

#define SLOT_NONE UINT32_MAX

/* Of a slot's entry; for the owner or the loop's thread, like all of this folder. */
struct timer_filing {
	uint32_t where; /* 0: not scheduled; else WHERE_ and the position there */
	uint32_t place; /* in a hub: low bits of the outbox position of the slot's latest handle */
};

/* timer_filing.where: the container, and below it the position */
#define WHERE_WHEEL ((uint32_t)1 << 30)
#define WHERE_RUN ((uint32_t)2 << 30)
#define WHERE_HEAP ((uint32_t)3 << 30)
#define WHERE_MASK ((uint32_t)3 << 30)

/* 12 bytes */
struct timer_due {
	uint64_t at_ns;
	uint32_t slot;
} __attribute__((packed, aligned(4)));

#endif
