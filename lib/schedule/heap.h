/* SPDX-License-Identifier: MIT */
/*
 * A 4-ary heap of timers by their exact times (D. B. Johnson, "Priority queues with update and
 * finding minimum spanning trees", 1975).
 *
 * The schedule keeps here what is due so soon that the buckets of the wheel are too coarse for it,
 * and what came too late to be sorted into the run. The heap uses no atomics and reads no clock.
 */
#ifndef TIMERHUB_HEAP_H
#define TIMERHUB_HEAP_H

#include <stdbool.h>

#include "schedule/entry.h"

struct heap {
	struct timer_due *entries;    /* has room for every slot; entries[0] is the earliest */
	struct timer_filing *filings; /* by slot; .where is WHERE_HEAP | index in entries */
	uint32_t count;
};

void heap_init(struct heap *heap, struct timer_due *entries, struct timer_filing *filings);

static inline bool heap_empty(const struct heap *heap)
{
	return heap->count == 0;
}

/* Adds a timer that is not scheduled yet to the heap. Takes O(log n). */
void heap_insert(struct heap *heap, struct timer_due due);

/* Removes the timer in `slot`, which must be in the heap. Takes O(log n). */
void heap_remove(struct heap *heap, uint32_t slot);

/* Returns when the timer in `slot` is due. It must be in the heap. */
uint64_t heap_at_ns(const struct heap *heap, uint32_t slot);

/* Returns when the earliest timer of the heap is due, or UINT64_MAX if the heap is empty. */
static inline uint64_t heap_first_ns(const struct heap *heap)
{
	return heap_empty(heap) ? UINT64_MAX : heap->entries[0].at_ns;
}

/* Returns the slot of the earliest timer of the heap, which must not be empty. */
static inline uint32_t heap_peek(const struct heap *heap)
{
	return heap->entries[0].slot;
}

/*
 * Removes the earliest timer of the heap, which must not be empty, and returns its slot. Takes
 * O(log n).
 */
uint32_t heap_take(struct heap *heap);

#endif
