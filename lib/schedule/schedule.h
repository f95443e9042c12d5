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
 * Opens an empty schedule. Each timer is known by its slot, a number below `slots`. `filings` is an
 * array of `slots` elements, in which the schedule records where each timer's entry is. Returns 0
 * or a negative errno.
 */
int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots);

void schedule_close(struct schedule *schedule);

/*
 * Schedules the timer in `slot` for this time. If the timer was scheduled for another time, it is
 * moved. UINT64_MAX takes it out of the schedule.
 */
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
 * Finds the earliest of the timers that are scheduled for a time before `before_ns`, and stores up
 * to `max` of their slots. The caller must schedule each of them again, because it may have been
 * moved to a later time. Returns the number of slots. It is 0 if no timer needs this; wheel_doubt()
 * has the exact rule.
 */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * Takes the earliest timer out of the schedule, if it is due at `now_ns`, and returns its slot.
 * Returns SLOT_NONE if no timer is due.
 *
 * If the call must first sort many entries, it takes as long as thousands of other calls. If
 * `cheaply` is true, it does not sort them, and returns SLOT_DEAR, so that the caller can first
 * deliver what it already has.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1)

/*
 * Returns the slot of a timer that will be taken soon, so that the caller can prefetch it. If the
 * sorted array `run` is not empty, this is the entry that comes `ahead` places after its first.
 * Otherwise it is the earliest timer in the wheel. Returns SLOT_NONE if there is no such timer, or
 * if it is not known.
 */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/*
 * Returns true if only the first entry was taken from the sorted array `run`. After a
 * schedule_take() this means that the array is new, so the caller begins to prefetch its timers.
 */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/*
 * Returns when the earliest timer is due, or UINT64_MAX if there is none. The result is never too
 * late, but it can be too early after the earliest timer was removed (see wheel_bound_ns()).
 */
uint64_t schedule_next_ns(struct schedule *schedule);

/*
 * Counts the timers by how soon after `now_ns` they are due, in the ranges of time of base/ahead.h.
 * wheel_ahead() says how exact the counts are. This takes up to half a millisecond if thousands of
 * buckets have entries.
 */
void schedule_ahead(const struct schedule *schedule, uint64_t now_ns,
                    uint64_t ret_counts[AHEAD_RANGES]);

#endif
