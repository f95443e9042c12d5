/* SPDX-License-Identifier: MIT */
/*
 * Slots by their exact times: those that came into the wheel's current finest bucket after the run
 * was sorted, or are before it. 4-ary (D. B. Johnson, "Priority queues with update and finding
 * minimum spanning trees", 1975). No atomics, no clock.
 */
#ifndef TIMERHUB_HEAP_H
#define TIMERHUB_HEAP_H

#include <stdbool.h>

#include "schedule/entry.h"

struct heap {
	struct timer_due *entries;    /* for every slot; entries[0] is the earliest */
	struct timer_filing *filings; /* .where: WHERE_HEAP | index */
	uint32_t count;
};

void heap_init(struct heap *heap, struct timer_due *entries, struct timer_filing *filings);

static inline bool heap_empty(const struct heap *heap)
{
	return heap->count == 0;
}

/* Not scheduled yet; O(log n). */
void heap_insert(struct heap *heap, struct timer_due due);

void heap_remove(struct heap *heap, uint32_t slot);

uint64_t heap_at_ns(const struct heap *heap, uint32_t slot);

/* UINT64_MAX if it is empty. */
static inline uint64_t heap_first_ns(const struct heap *heap)
{
	return heap_empty(heap) ? UINT64_MAX : heap->entries[0].at_ns;
}

static inline uint32_t heap_peek(const struct heap *heap)
{
	return heap->entries[0].slot;
}

/* O(log n). */
uint32_t heap_take(struct heap *heap);

#endif
