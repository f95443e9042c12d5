/* SPDX-License-Identifier: MIT */
/*
 * Holds the slots of the wheel's current finest bucket. The slots are sorted once, by a radix sort,
 * and taken from the front. The memory of the next slots can therefore be fetched in advance.
 * Single-threaded and pure: no atomics, no clock.
 */
#ifndef TIMERHUB_RUN_H
#define TIMERHUB_RUN_H

#include <stdbool.h>

#include "schedule/entry.h"

struct run {
	struct timer_due *entries;    /* room for every slot; sorted from begin to end */
	struct timer_due *spare;      /* a second array like `entries`, for sorting */
	struct timer_filing *filings; /* .where of a slot in the run: WHERE_RUN | its index */
	uint32_t begin; /* index of the earliest entry, whose slot is never SLOT_NONE */
	uint32_t end;
};

void run_init(struct run *run, struct timer_due *entries, struct timer_due *spare,
              struct timer_filing *filings);

static inline bool run_empty(const struct run *run)
{
	return run->begin == run->end;
}

/*
 * run_add() adds a slot to a run that is not sorted yet, and run_sort() sorts the run. The times of
 * the slots may differ only in the low 16 bits.
 */
void run_add(struct run *run, struct timer_due due);
void run_sort(struct run *run);

/* run_remove() removes a slot of a sorted run, and run_at_ns() returns the time of such a slot. */
void run_remove(struct run *run, uint32_t slot);
uint64_t run_at_ns(const struct run *run, uint32_t slot);

/* Returns the earliest time; UINT64_MAX if the run is empty. */
static inline uint64_t run_first_ns(const struct run *run)
{
	return run_empty(run) ? UINT64_MAX : run->entries[run->begin].at_ns;
}

/* Take the earliest slot. The run must not be empty. */
uint32_t run_take(struct run *run);

/* Returns a slot of the run, or SLOT_NONE. The run has at most `ahead` slots before this slot. */
static inline uint32_t run_peek(const struct run *run, uint32_t ahead)
{
	return ahead < run->end - run->begin ? run->entries[run->begin + ahead].slot : SLOT_NONE;
}

#endif
