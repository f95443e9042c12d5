/* SPDX-License-Identifier: MIT */
/*
 * Which slots are due, in order. The run has the wheel's current finest bucket, the heap what came
 * later and is due by that bucket's end, the wheel the rest. No atomics, no clock.
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
	struct timer_filing *filings; /* by slot */
	uint64_t taken_ns;            /* of the slot taken last */
	uint64_t cascaded;            /* slots moved to a lower level or to the run */
	struct memory memory;
};

/* With an element of `filings` for each slot. 0 or a negative errno. */
int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots);
void schedule_close(struct schedule *schedule);

/* In place of its old entry; UINT64_MAX removes that. */
void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns);

/* What its move will touch. */
CPU_FETCHES void schedule_fetch(const struct schedule *schedule, uint32_t slot)
{
	if ((schedule->filings[slot].where & WHERE_MASK) == WHERE_WHEEL)
		wheel_fetch(&schedule->wheel, slot);
}

void schedule_remove(struct schedule *schedule, uint32_t slot);

/* UINT64_MAX: not scheduled. */
uint64_t schedule_at_ns(const struct schedule *schedule, uint32_t slot);

/* Like wheel_doubt(). */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * The earliest slot due at `now_ns`, or SLOT_NONE. The sort of a long bucket costs thousands of
 * usual calls: `cheaply` returns SLOT_DEAR instead.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1)

/*
 * A slot with at most `ahead` of the run before it; of an empty run the wheel's earliest;
 * SLOT_NONE: not known.
 */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/* Was the last taken slot the first of a newly sorted run? */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/* Or a lower bound of it (wheel_bound_ns()); UINT64_MAX: none. */
uint64_t schedule_next_ns(struct schedule *schedule);

#endif
