/* SPDX-License-Identifier: MIT */
/*
 * A sorted array of timers. When the time reaches a bucket of the wheel, the bucket's entries are
 * put here, sorted once, and then taken from the front. Because it is known which timers come next,
 * their memory can be prefetched. The run uses no atomics and reads no clock.
 */
#ifndef TIMERHUB_RUN_H
#define TIMERHUB_RUN_H

#include <stdbool.h>

#include "schedule/entry.h"

#define RUN_TIME_BITS 16 /* how many low bits of the times differ within a run */

struct run {
	struct timer_due *entries;    /* has room for every slot; in order from begin to end */
	struct timer_due *spare;      /* a second array of this size, which the sort writes to */
	struct timer_filing *filings; /* by slot; .where is WHERE_RUN | index in entries */
	uint32_t begin; /* index of the earliest entry, which is never a removed one */
	uint32_t end;   /* index behind the last entry; equals begin if it is empty */
};

void run_init(struct run *run, struct timer_due *entries, struct timer_due *spare,
              struct timer_filing *filings);

static inline bool run_empty(const struct run *run)
{
	return run->begin == run->end;
}

/*
 * Adds a timer at the end of the array, without sorting. The caller must call run_sort() when it
 * has added all timers.
 */
void run_add(struct run *run, struct timer_due due);

/*
 * Sorts the array of timers by time. Compares only the low RUN_TIME_BITS bits, because all timers
 * come from one bucket of the wheel and agree in the others.
 */
void run_sort(struct run *run);

/* Removes the timer in `slot` from the sorted array. The timer must be in the array. */
void run_remove(struct run *run, uint32_t slot);

/* Returns when the timer in `slot`, which must be in the sorted array, is due. */
uint64_t run_at_ns(const struct run *run, uint32_t slot);

/* Returns the due time of the earliest timer in the array, or UINT64_MAX if the array is empty. */
static inline uint64_t run_first_ns(const struct run *run)
{
	return run_empty(run) ? UINT64_MAX : run->entries[run->begin].at_ns;
}

/*
 * Takes the earliest timer out of this sorted array, which must not be empty, and returns its slot.
 */
uint32_t run_take(struct run *run);

/*
 * Returns the slot of the earliest entry if `ahead` is 0, of the next entry if it is 1, and so on.
 * Returns SLOT_NONE if this entry was removed or does not exist.
 */
static inline uint32_t run_peek(const struct run *run, uint32_t ahead)
{
	return ahead < run->end - run->begin ? run->entries[run->begin + ahead].slot : SLOT_NONE;
}

#endif
