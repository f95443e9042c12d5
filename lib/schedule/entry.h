/* SPDX-License-Identifier: MIT */
/*
 * What the three parts of a schedule, wheel, run and heap, have in common. They know a hub's timer
 * or a loop's timeout by its slot, which is its index in the arrays of the hub or loop. Each slot
 * has at most one entry in the schedule, and a filing that says where the entry lies, so that it
 * can be moved or removed at once. Only the thread that keeps the schedule, a hub's owner or a
 * loop's thread, reads and writes entries and filings.
 */
#ifndef TIMERHUB_ENTRY_H
#define TIMERHUB_ENTRY_H

#include <stdint.h>

#define SLOT_NONE UINT32_MAX
/*
 * The most timers that a schedule can have. It is 2 less than 2^26, so that slot + 1 fits into 26
 * bits.
 */
#define SCHEDULE_SLOTS_MAX (((uint32_t)1 << 26) - 2)

/* Says where the schedule entry of a timer is, so that the entry can be found at once. */
struct timer_filing {
	uint32_t where; /* WHERE_WHEEL, _RUN or _HEAP, and the position there; 0: not scheduled */
	uint32_t place; /* a hub's: low bits of where the slot's latest handle is in the outbox */
};

/*
 * The two highest bits of timer_filing.where say which part of the schedule has the entry, and the
 * other bits are the entry's position there.
 */
#define WHERE_WHEEL ((uint32_t)1 << 30)
#define WHERE_RUN ((uint32_t)2 << 30)
#define WHERE_HEAP ((uint32_t)3 << 30)
#define WHERE_MASK ((uint32_t)3 << 30)
_Static_assert(SCHEDULE_SLOTS_MAX <= ~WHERE_MASK, "run and heap have a position for each slot");

/*
 * An entry of the schedule: the timer in `slot` is due at `at_ns`. It is packed into 12 bytes,
 * because millions of entries are sorted and moved.
 */
struct timer_due {
	uint64_t at_ns;
	uint32_t slot;
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct timer_due) == 12, "an entry has no padding");

#endif
