/* SPDX-License-Identifier: MIT */
/*
 * When each slot is due: the wheel for later, the heap for next. Insert and remove at any time,
 * ask for the next instant, take what is due. Single-threaded and pure: no atomics; time is an
 * argument.
 */
#ifndef TIMERHUB_SCHEDULE_H
#define TIMERHUB_SCHEDULE_H

#include "heap.h"
#include "wheel.h"

struct schedule {
	struct wheel wheel;           /* what is due after the base's finest bucket */
	struct heap heap;             /* what is due within it, or before */
	struct timer_filing *filings; /* one per slot, zeroed at first */
	uint64_t cascaded;            /* slots moved to a lower level or into the heap so far */
};

/* `levels` and `entries` as for wheel_init() and heap_init(). */
void schedule_init(struct schedule *schedule, struct wheel_level *levels,
                   struct heap_entry *entries, struct timer_filing *filings);

/* File the slot under this instant, wherever it was before. UINT64_MAX: file it nowhere. */
void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns);

/* File the slot nowhere; fine if it is not filed. */
void schedule_remove(struct schedule *schedule, uint32_t slot);

/*
 * Take the earliest slot filed at or before `now_ns`, or SLOT_NONE. Slots come in order of instant.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns);

/* The earliest instant (or a bound below it, see wheel_bound_ns); UINT64_MAX if there is none. */
uint64_t schedule_next_ns(struct schedule *schedule);

#endif
