/* SPDX-License-Identifier: MIT */
/*
 * The slots of the wheel's current finest bucket, sorted once, by radix, and taken from the front,
 * so that the next ones' memory can be fetched in advance. No atomics, no clock.
 */
#ifndef TIMERHUB_RUN_H
#define TIMERHUB_RUN_H

#include <stdbool.h>

#include "schedule/entry.h"

struct run {
	struct timer_due *entries;    /* for every slot; sorted from begin to end */
	struct timer_due *spare;      /* for sorting */
	struct timer_filing *filings; /* .where: WHERE_RUN | index */
	uint32_t begin;               /* earliest entry, whose slot is never SLOT_NONE */
	uint32_t end;
};

void run_init(struct run *run, struct timer_due *entries, struct timer_due *spare,
              struct timer_filing *filings);

static inline bool run_empty(const struct run *run)
{
	return run->begin == run->end;
}

/* Add to an unsorted run, then sort. The times differ in the low 16 bits only. */
void run_add(struct run *run, struct timer_due due);
void run_sort(struct run *run);

/* Of a sorted run. */
void run_remove(struct run *run, uint32_t slot);
uint64_t run_at_ns(const struct run *run, uint32_t slot);

/* UINT64_MAX if it is empty. */
static inline uint64_t run_first_ns(const struct run *run)
{
	return run_empty(run) ? UINT64_MAX : run->entries[run->begin].at_ns;
}

uint32_t run_take(struct run *run);

/* Or SLOT_NONE; at most `ahead` slots come before it. */
static inline uint32_t run_peek(const struct run *run, uint32_t ahead)
{
	return ahead < run->end - run->begin ? run->entries[run->begin + ahead].slot : SLOT_NONE;
}

#endif
