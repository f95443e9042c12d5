/* SPDX-License-Identifier: MIT */
/*
 * When each slot is due: the wheel for later, the run for the finest bucket whose turn it is, the
 * heap for what is filed into that bucket afterwards. Insert and remove at any time, ask for the
 * next instant, take what is due. Single-threaded and pure: no atomics; time is an argument.
 */
#ifndef TIMERHUB_SCHEDULE_H
#define TIMERHUB_SCHEDULE_H

#include "base/cpu.h"
#include "base/memory.h"
#include "schedule/heap.h"
#include "schedule/run.h"
#include "schedule/wheel.h"

struct schedule {
	struct wheel wheel;           /* what is due after the base's finest bucket */
	struct run run;               /* what was in that bucket when the base entered it */
	struct heap heap;             /* what was filed into it, or before it, since */
	struct timer_filing *filings; /* one per slot, zeroed at first */
	uint64_t taken_ns;            /* the instant that the slot last taken was filed under */
	uint64_t cascaded;            /* slots moved to a lower level or into the run so far */
	struct memory memory;         /* holds all but the filings */
};

/* Reserve memory for as many slots as there are filings. 0, or a negative errno. */
int schedule_open(struct schedule *schedule, struct timer_filing *filings, uint32_t slots);
void schedule_close(struct schedule *schedule);

/* File the slot under this instant, wherever it was before. UINT64_MAX: file it nowhere. */
void schedule_insert(struct schedule *schedule, uint32_t slot, uint64_t at_ns);

/* Have the memory fetched that filing the slot elsewhere will touch. Only a hint. */
CPU_FETCHES void schedule_fetch(const struct schedule *schedule, uint32_t slot)
{
	if ((schedule->filings[slot].where & WHERE_MASK) == WHERE_WHEEL)
		wheel_fetch(&schedule->wheel, slot);
}

/* File the slot nowhere; fine if it is not filed. */
void schedule_remove(struct schedule *schedule, uint32_t slot);

/* Returns the instant that the slot is filed under; UINT64_MAX if it is not filed. */
uint64_t schedule_at_ns(const struct schedule *schedule, uint32_t slot);

/*
 * Tell up to `max` slots that keep it open whether anything comes before an instant, if what slots
 * are filed under may be out of date: the first, or if it is not known, some of its bucket. The
 * caller files each of them again, under its old instant if that still holds, or nowhere. 0: no
 * slot comes before it; but see wheel_doubt().
 */
unsigned schedule_doubt(struct schedule *schedule, uint64_t before_ns, uint32_t *slots,
                        unsigned max);

/*
 * Take the earliest slot filed at or before `now_ns`, or SLOT_NONE. Slots come in order of instant.
 * A take may put many slots in order, which is as much work as thousands of others; also one that
 * then finds none due. With `cheaply` such a take does nothing, and returns SLOT_DEAR.
 */
uint32_t schedule_take(struct schedule *schedule, uint64_t now_ns, bool cheaply);
#define SLOT_DEAR (SLOT_NONE - 1)

/* A slot that will be taken soon, `ahead` takes from now at most; SLOT_NONE if it is not known. */
static inline uint32_t schedule_peek(const struct schedule *schedule, uint32_t ahead)
{
	return run_empty(&schedule->run) ? wheel_peek(&schedule->wheel)
	                                 : run_peek(&schedule->run, ahead);
}

/* Was the slot last taken the first of many that came to be known together? */
static inline bool schedule_at_front(const struct schedule *schedule)
{
	return schedule->run.begin == 1;
}

/* The earliest instant (or a bound below it, see wheel_bound_ns); UINT64_MAX if there is none. */
uint64_t schedule_next_ns(struct schedule *schedule);

#endif
