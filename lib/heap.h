/* SPDX-License-Identifier: MIT */
/*
 * The timers due next, by exact deadline: a 4-ary heap (D. B. Johnson, "Priority queues with update
 * and finding minimum spanning trees", 1975). Single-threaded and pure: no atomics, no clock.
 */
#ifndef TIMERHUB_HEAP_H
#define TIMERHUB_HEAP_H

#include "timer.h"

struct heap_entry {
	uint64_t at_ns; /* the instant that it is ordered by */
	uint32_t slot;
};

struct heap {
	struct heap_entry *entries;   /* room for every slot; entries[0] is the earliest */
	struct timer_filing *filings; /* .where of a slot in here: HEAP_WHERE | its index */
	uint32_t count;
};

/* Set in timer_filing.where for a slot that is in the heap. */
#define HEAP_WHERE ((uint32_t)1 << 31)

void heap_init(struct heap *heap, struct heap_entry *entries, struct timer_filing *filings);

/* The slot must be filed nowhere; its filing's at_ns is the instant. O(log n). */
void heap_insert(struct heap *heap, uint32_t slot);

/* The slot must be in the heap. O(log n). */
void heap_remove(struct heap *heap, uint32_t slot);

/* The earliest instant; UINT64_MAX if empty. */
static inline uint64_t heap_first_ns(const struct heap *heap)
{
	return heap->count == 0 ? UINT64_MAX : heap->entries[0].at_ns;
}

/* Take the earliest. The heap must not be empty. O(log n). */
uint32_t heap_take(struct heap *heap);

#endif
