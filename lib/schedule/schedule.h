/* SPDX-License-Identifier: MIT */
/*
 * Tells which slots are due, in the order of their times. A hub's owner keeps its timers in one,
 * and a loop its timeouts.
 *
 * It has three parts. The wheel holds what is due later. When the time reaches one of the wheel's
 * buckets, the slots in it are sorted into the run. What is inserted after that, and is due before
 * the bucket's end, goes into the heap. It uses no atomics and reads no clock.
 */
#ifndef TIMERHUB_SCHEDULE_H
#define TIMERHUB_SCHEDULE_H

#include "base/cpu.h"
#include "base/memory.h"
#include "schedule/heap.h"
#include "schedule/run.h"
#include "schedule/wheel.h"

struct schedule {
	struct wheel wheel;
	struct run run;
	struct heap heap;
	struct timer_filing *filings; /* by slot: where its entry lies */
	uint64_t taken_ns;            /* the time of the slot that was taken last */
	uint64_t cascaded;            /* how often a slot moved to a lower level or to the run */
	struct memory memory;
};

/*
 * Reserves memory for so many slots; `filings` has an element for each. Returns 0 or a negative
 * errno.
 */
int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots);

/* Gives back the memory. */
void schedule_close(struct schedule *schedule);

/* Schedules a slot for a time, instead of the one that it had. UINT64_MAX unschedules it. */
void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns);

/* Fetches the memory that moving the slot will touch. */
CPU_FETCHES void schedule_fetch(const struct schedule *schedule, uint32_t slot)
{
	if ((schedule->filings[slot].where & WHERE_MASK) == WHERE_WHEEL)
		wheel_fetch(&schedule->wheel, slot);
}

/* Unschedules a slot. Does nothing if it is not scheduled. */
void schedule_remove(struct schedule *schedule, uint32_t slot);

/* Returns the time for which a slot is scheduled, or UINT64_MAX if it is not. */
uint64_t schedule_at_ns(const struct schedule *schedule, uint32_t slot);

/*
 * Stores up to `max` slots whose entries the caller should check, because their timers may have
 * moved since. Returns how many. wheel_doubt() has the details.
 */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * Removes and returns the earliest slot that is due at `now_ns`, or SLOT_NONE if none is.
 *
 * If a long bucket has to be sorted first, the call takes as long as thousands of others. With
 * `cheaply` it then returns SLOT_DEAR instead and does nothing, so that the caller can first
 * deliver what it already has.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1)

/*
 * Returns a slot that will be taken soon, so that its memory can be fetched: one that has at most
 * `ahead` others of the run before it, or the wheel's earliest if the run is empty. Returns
 * SLOT_NONE if it is not known which slot that is.
 */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/* Tells whether the slot that was taken last was the first of a newly sorted run. */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/*
 * Returns the time of the earliest slot, or UINT64_MAX if there is none. The result can be too
 * early, but never too late; wheel_bound_ns() says when.
 */
uint64_t schedule_next_ns(struct schedule *schedule);

#endif
