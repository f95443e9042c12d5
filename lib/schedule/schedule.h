/* SPDX-License-Identifier: MIT */
/*
 * Tells which timers are due, in the order of their times. A hub's owner keeps its timers in one,
 * and a loop its timeouts.
 *
 * A schedule has three parts. The wheel holds what is due later. When the time reaches one of the
 * wheel's buckets, the entries in it are sorted into the run. What is inserted after that, and is
 * due before the bucket's end, goes into the heap. The schedule uses no atomics and reads no clock.
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
 * Opens an empty schedule for `slots` timers, with as many `filings`. Returns 0 or a negative
 * errno.
 */
int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots);

void schedule_close(struct schedule *schedule);

/* Schedules a timer for this time, or moves it there. UINT64_MAX takes it out of the schedule. */
void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns);

/* Prefetches the memory that is touched when the timer in `slot` is moved to another time. */
CPU_FETCHES void schedule_fetch(const struct schedule *schedule, uint32_t slot)
{
	if ((schedule->filings[slot].where & WHERE_MASK) == WHERE_WHEEL)
		wheel_fetch(&schedule->wheel, slot);
}

/* Takes the timer in `slot` out of the schedule. Does nothing if it is not there. */
void schedule_remove(struct schedule *schedule, uint32_t slot);

/* Returns the time for which the timer in `slot` is scheduled, or UINT64_MAX if it is not. */
uint64_t schedule_at_ns(const struct schedule *schedule, uint32_t slot);

/*
 * Stores up to `max` slots whose entries may be too early, and returns how many. The caller
 * reschedules them.
 */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * Takes the earliest timer if it is due. Returns SLOT_NONE if it is not. Returns SLOT_DEAR if
 * `cheaply` and a sort is needed.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1) /* only if `cheaply`: a long sort comes next, so deliver first */

/* Returns the slot of a timer that will be taken soon, or SLOT_NONE. */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/* Tells whether the sorted array `run` was just filled. Then its timers should be prefetched. */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/* Returns when the earliest timer is due, or UINT64_MAX. Can be too early, but never too late. */
uint64_t schedule_next_ns(struct schedule *schedule);

/* Counts timers by how soon they are due (wheel_ahead()). Takes up to half a millisecond. */
void schedule_ahead(const struct schedule *schedule, uint64_t now_ns,
                    uint64_t ret_counts[AHEAD_RANGES]);

#endif
