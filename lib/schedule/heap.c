/* SPDX-License-Identifier: MIT */
/*
 * Keeps schedule entries in a heap, so that the earliest is always at hand (heap.h). Two things are
 * true after each call: no entry is earlier than its parent, and the filing of each slot has the
 * index of the slot's entry. The time is part of the entry, so that a comparison touches no other
 * memory.
 */
#include "schedule/heap.h"

#include "base/invariant.h"

#define HEAP_ARITY 4

void heap_init(struct heap *heap, struct timer_due *entries, struct timer_filing *filings)
{
	heap->entries = entries;
	heap->filings = filings;
	heap->count = 0;
}

/* Stores an entry at this index, and records the index in the slot's element of `filings`. */
static void heap_put_at(struct heap *heap, uint32_t index, struct timer_due entry)
{
	heap->entries[index] = entry;
	heap->filings[entry.slot].where = WHERE_HEAP | index;
}

/*
 * Puts an entry into the heap at `index`. If the parent there is later, that parent moves down and
 * the entry goes to the parent's place, and so on up the tree.
 */
static void heap_sift_up(struct heap *heap, uint32_t index, struct timer_due entry)
{
	while (index > 0) {
		uint32_t parent = (index - 1) / HEAP_ARITY;

		if (heap->entries[parent].at_ns <= entry.at_ns)
			break;
		heap_put_at(heap, index, heap->entries[parent]);
		index = parent;
	}
	heap_put_at(heap, index, entry);
}

/* Returns the index of the earliest of up to HEAP_ARITY children, which begin at index `first`. */
static uint32_t heap_earliest_child(const struct heap *heap, uint32_t first)
{
	uint32_t end = heap->count - first < HEAP_ARITY ? heap->count : first + HEAP_ARITY;
	uint32_t best = first;

	for (uint32_t i = first + 1; i < end; i++)
		if (heap->entries[i].at_ns < heap->entries[best].at_ns)
			best = i;
	return best;
}

/*
 * Puts an entry into the heap at `index`. If a child there is earlier, that child moves up and the
 * entry goes to the child's place, and so on down the tree.
 */
static void heap_sift_down(struct heap *heap, uint32_t index, struct timer_due entry)
{
	for (;;) {
		uint32_t child = HEAP_ARITY * index + 1;

		if (child >= heap->count)
			break;
		child = heap_earliest_child(heap, child);
		if (heap->entries[child].at_ns >= entry.at_ns)
			break;
		heap_put_at(heap, index, heap->entries[child]);
		index = child;
	}
	heap_put_at(heap, index, entry);
}

void heap_insert(struct heap *heap, struct timer_due due)
{
	invariant(heap->filings[due.slot].where == 0);
	heap_sift_up(heap, heap->count++, due);
}

static uint32_t heap_index_of(const struct heap *heap, uint32_t slot)
{
	uint32_t where = heap->filings[slot].where;

	invariant((where & WHERE_MASK) == WHERE_HEAP && (where & ~WHERE_MASK) < heap->count);
	return where & ~WHERE_MASK;
}

uint64_t heap_at_ns(const struct heap *heap, uint32_t slot)
{
	return heap->entries[heap_index_of(heap, slot)].at_ns;
}

void heap_remove(struct heap *heap, uint32_t slot)
{
	uint32_t index = heap_index_of(heap, slot);
	struct timer_due last = heap->entries[--heap->count];

	heap->filings[slot].where = 0;
	if (index == heap->count)
		return;
	if (index > 0 && heap->entries[(index - 1) / HEAP_ARITY].at_ns > last.at_ns)
		heap_sift_up(heap, index, last);
	else
		heap_sift_down(heap, index, last);
}

uint32_t heap_take(struct heap *heap)
{
	uint32_t slot = heap_peek(heap);

	heap_remove(heap, slot);
	return slot;
}
