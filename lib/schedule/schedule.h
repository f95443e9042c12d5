/* SPDX-License-Identifier: MIT */
/*
 * Tells which timers are due, in the order of their times. A hub's owner keeps its timers in one,
 * and a loop its timeouts. A timer that is postponed keeps its entry, which then comes up too
 * early. Before the thread sleeps, it corrects such entries: schedule_doubt() says which entries to
 * check.
 *
 * A schedule has three parts. The wheel holds what is due later. When the time reaches one of the
 * wheel's buckets, the entries in it are sorted into the run. What is inserted after that, and is
 * due before the bucket's end, goes into the heap. The schedule uses no atomics and reads no clock.
 *
 * schedule_take() must sometimes sort many timers before it can return one. If `cheaply` is true,
 * it returns SLOT_DEAR instead. The owner then publishes the events that are ready, so that they do
 * not have to wait for the sort, and calls schedule_take() again with `cheaply` false.
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
 * Opens an empty schedule for timers with numbers (slots) below `slots`. `filings` has `slots`
 * elements, which record where each timer's entry is. Returns 0 or a negative errno.
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
 * Stores in `slots` up to `max` slots, in any order, that may be among the first in the schedule,
 * and returns how many. Their timers may have been postponed or cancelled, so the caller must
 * schedule each slot anew or remove it. Returns 0 if nothing before `before_ns` is left to check.
 */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * Takes out the earliest timer and returns its slot. Returns SLOT_NONE if no timer is due at
 * `now_ns`. Returns SLOT_DEAR if `cheaply` is true and the call could take long.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1)

/*
 * Guesses which slot schedule_take() will return after `ahead` other calls. Returns SLOT_NONE if it
 * has no guess.
 */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/*
 * Returns true if schedule_take() has just filled the sorted array `run` and taken its first entry.
 * Then it pays to prefetch the timers in it.
 */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/*
 * Returns when the earliest timer is due, or UINT64_MAX if there is none. The result can be too
 * early after the earliest was removed (see wheel_bound_ns()), but not too late.
 */
uint64_t schedule_next_ns(struct schedule *schedule);

/*
 * Counts the timers by how soon after `now_ns` they are due, as wheel_ahead() does. This takes up
 * to half a millisecond if thousands of buckets have entries.
 */
void schedule_ahead(const struct schedule *schedule, uint64_t now_ns,
                    uint64_t ret_counts[AHEAD_RANGES]);

#endif
