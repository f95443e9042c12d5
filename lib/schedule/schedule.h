/* SPDX-License-Identifier: MIT */
/*
 * Keeps the times at which slots are due. Returns the due slots in the order of their times. The
 * run holds the slots of the wheel's current finest bucket. The heap holds slots that were added
 * after the run was filled and are due by the end of this bucket. The wheel holds all slots that
 * are due after this bucket. Single-threaded, without atomics or clock.
 */
#ifndef TIMERHUB_SCHEDULE_H
#define TIMERHUB_SCHEDULE_H

#include "base/cpu.h"
#include "base/memory.h"
#include "schedule/heap.h"
#include "schedule/run.h"
#include "schedule/wheel.h"

struct schedule {
	struct wheel wheel; /* slots due after the current finest bucket */
	struct run run;     /* slots that were in the current bucket when the base entered it */
	struct heap heap;   /* slots added since `run` was filled and due by the bucket's end */
	struct timer_filing *filings; /* position of each slot's entry; zero: not scheduled */
	uint64_t taken_ns;            /* scheduled time of the slot that was taken last */
	uint64_t cascaded;            /* number of slots moved to a lower level or to the run */
	struct memory memory;         /* the mapping of everything except the filings */
};

/*
 * Reserve memory for `slots` slots. The array `filings` has an element for each slot. Returns 0, or
 * a negative errno.
 */
int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots);
void schedule_close(struct schedule *schedule);

/* Schedule the slot at this time, in place of its old entry. UINT64_MAX: remove the entry. */
void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns);

/* Fetch the memory that is touched when the slot is scheduled at another time. */
CPU_FETCHES void schedule_fetch(const struct schedule *schedule, uint32_t slot)
{
	if ((schedule->filings[slot].where & WHERE_MASK) == WHERE_WHEEL)
		wheel_fetch(&schedule->wheel, slot);
}

/* Remove the slot's entry, if it has one. */
void schedule_remove(struct schedule *schedule, uint32_t slot);

/* Returns the time at which the slot is scheduled; UINT64_MAX if it is not scheduled. */
uint64_t schedule_at_ns(const struct schedule *schedule, uint32_t slot);

/* Like wheel_doubt(), for the slots of the whole schedule. */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * Take the earliest slot that is scheduled at or before `now_ns`. Returns SLOT_NONE if no slot is
 * due. Slots are taken in the order of their times. A call that must first sort a long bucket costs
 * as much as thousands of usual calls. If `cheaply` is true, schedule_take() returns SLOT_DEAR
 * instead of sorting a long bucket.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1)

/*
 * Returns a slot of the run, which holds the sorted slots that are due next. The run has at most
 * `ahead` slots before the returned slot. If the run holds no slots, schedule_peek() returns the
 * earliest slot of the wheel. SLOT_NONE means that no slot is known.
 */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/* Returns whether the last taken slot was the first of a newly sorted run. */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/* Returns the earliest time or a lower bound of it (wheel_bound_ns()); UINT64_MAX: no slot. */
uint64_t schedule_next_ns(struct schedule *schedule);

#endif
