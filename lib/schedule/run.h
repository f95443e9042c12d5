/* SPDX-License-Identifier: MIT */
/*
 * The timers of the finest bucket whose turn has come: sorted once, by a radix sort, then taken
 * from the front. So what comes next is known ahead, and its memory can be fetched ahead.
 * Single-threaded and pure: no atomics, no clock.
 */
#ifndef TIMERHUB_RUN_H
#define TIMERHUB_RUN_H

#include <stdbool.h>

#include "schedule/filing.h"

struct run {
	struct timer_due *entries;    /* room for every slot; sorted from begin to end */
	struct timer_due *spare;      /* as much again, for sorting */
	struct timer_filing *filings; /* .where of a slot in here: WHERE_RUN | its index */
	uint32_t begin;               /* the earliest; its slot is never SLOT_NONE */
	uint32_t end;
};

void run_init(struct run *run, struct timer_due *entries, struct timer_due *spare,
              struct timer_filing *filings);

static inline bool run_empty(const struct run *run)
{
	return run->begin == run->end;
}

/*
 * Fill an empty run: add in any order, instants that differ in their low 16 bits only, then sort.
 */
void run_add(struct run *run, struct timer_due due);
void run_sort(struct run *run);

/* The slot must be in the run, and sorted. */
void run_remove(struct run *run, uint32_t slot);
uint64_t run_at_ns(const struct run *run, uint32_t slot);

/* The earliest instant; UINT64_MAX if empty. */
static inline uint64_t run_first_ns(const struct run *run)
{
	return run_empty(run) ? UINT64_MAX : run->entries[run->begin].at_ns;
}

/* Take the earliest. The run must not be empty. */
uint32_t run_take(struct run *run);

/* A slot that will be taken soon, `ahead` takes from now at most; SLOT_NONE if it is not known. */
static inline uint32_t run_peek(const struct run *run, uint32_t ahead)
{
	return ahead < run->end - run->begin ? run->entries[run->begin + ahead].slot : SLOT_NONE;
}

#endif
