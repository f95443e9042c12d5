/* SPDX-License-Identifier: MIT */
/*
 * A sorted array of slots. When the time reaches a bucket of the wheel, the bucket's slots are put
 * here, sorted once, and then taken from the front. Because it is known which slots come next,
 * their memory can be fetched before it is needed. It uses no atomics and reads no clock.
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

/* Adds a slot at the end. The run is unsorted then, and run_sort() must follow. */
void run_add(struct run *run, struct timer_due due);

/* Sorts the run by the low RUN_TIME_BITS bits of the times, because the others are all equal. */
void run_sort(struct run *run);

/* Removes a slot that is in the run, which must be sorted. */
void run_remove(struct run *run, uint32_t slot);

/* Returns the time of a slot that is in the run. */
uint64_t run_at_ns(const struct run *run, uint32_t slot);

/* Returns the time of the earliest slot, or UINT64_MAX if the run is empty. */
static inline uint64_t run_first_ns(const struct run *run)
{
	return run_empty(run) ? UINT64_MAX : run->entries[run->begin].at_ns;
}

/* Removes and returns the earliest slot. The run must not be empty. */
uint32_t run_take(struct run *run);

/*
 * Returns a slot that will be taken soon: at most `ahead` others come before it, fewer if some were
 * removed. Returns SLOT_NONE if there is no entry so far ahead, or if it was removed.
 */
static inline uint32_t run_peek(const struct run *run, uint32_t ahead)
{
	return ahead < run->end - run->begin ? run->entries[run->begin + ahead].slot : SLOT_NONE;
}

#endif
