/* SPDX-License-Identifier: MIT */
/*
 * Timers that were filed when their turn was about to come, by exact instant: a 4-ary heap (D. B.
 * Johnson, "Priority queues with update and finding minimum spanning trees", 1975). Single-threaded
 * and pure: no atomics, no clock.
 */
#ifndef TIMERHUB_HEAP_H
#define TIMERHUB_HEAP_H

#include <stdbool.h>

#include "schedule/filing.h"

struct heap {
	struct timer_due *entries;    /* room for every slot; entries[0] is the earliest */
	struct timer_filing *filings; /* .where of a slot in here: WHERE_HEAP | its index */
	uint32_t count;
};

void heap_init(struct heap *heap, struct timer_due *entries, struct timer_filing *filings);

static inline bool heap_empty(const struct heap *heap)
{
	return heap->count == 0;
}

/* The slot must be filed nowhere. O(log n). */
void heap_insert(struct heap *heap, struct timer_due due);

/* The slot must be in the heap. O(log n). */
void heap_remove(struct heap *heap, uint32_t slot);

/* The instant that a slot in the heap is filed under. */
uint64_t heap_at_ns(const struct heap *heap, uint32_t slot);

/* The earliest instant; UINT64_MAX if empty. */
static inline uint64_t heap_first_ns(const struct heap *heap)
{
	return heap_empty(heap) ? UINT64_MAX : heap->entries[0].at_ns;
}

/* The earliest. The heap must not be empty. */
static inline uint32_t heap_peek(const struct heap *heap)
{
	return heap->entries[0].slot;
}

/* Take the earliest. The heap must not be empty. O(log n). */
uint32_t heap_take(struct heap *heap);

#endif
