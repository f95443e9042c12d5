/* SPDX-License-Identifier: MIT */
#include "heap4.h"

#include <string.h>

#include "subject.h"

#define HEAP4_ARITY 4

void heap4_open(struct heap4 *heap, uint32_t timers)
{
	heap->entries = subject_allocate(timers, sizeof(*heap->entries));
	heap->places = subject_allocate(timers, sizeof(*heap->places));
	heap->count = 0;
	memset(heap->places, 0xff, (size_t)timers * sizeof(*heap->places));
}

static void heap4_set(struct heap4 *heap, uint32_t place, struct heap4_entry entry)
{
	heap->entries[place] = entry;
	heap->places[entry.timer] = place;
}

static void heap4_sift_up(struct heap4 *heap, uint32_t place, struct heap4_entry entry)
{
	while (place > 0) {
		uint32_t parent = (place - 1) / HEAP4_ARITY;

		if (heap->entries[parent].deadline_ns <= entry.deadline_ns)
			break;
		heap4_set(heap, place, heap->entries[parent]);
		place = parent;
	}
	heap4_set(heap, place, entry);
}

static uint32_t heap4_least_child(const struct heap4 *heap, uint32_t place)
{
	uint32_t first = place * HEAP4_ARITY + 1;
	uint32_t least = first;

	for (uint32_t i = first + 1; i < first + HEAP4_ARITY && i < heap->count; i++)
		if (heap->entries[i].deadline_ns < heap->entries[least].deadline_ns)
			least = i;
	return least;
}

static void heap4_sift_down(struct heap4 *heap, uint32_t place, struct heap4_entry entry)
{
	while (place * HEAP4_ARITY + 1 < heap->count) {
		uint32_t child = heap4_least_child(heap, place);

		if (entry.deadline_ns <= heap->entries[child].deadline_ns)
			break;
		heap4_set(heap, place, heap->entries[child]);
		place = child;
	}
	heap4_set(heap, place, entry);
}

static void heap4_sift(struct heap4 *heap, uint32_t place, struct heap4_entry entry)
{
	if (place > 0 && entry.deadline_ns < heap->entries[(place - 1) / HEAP4_ARITY].deadline_ns)
		heap4_sift_up(heap, place, entry);
	else
		heap4_sift_down(heap, place, entry);
}

void heap4_put(struct heap4 *heap, uint32_t timer, uint64_t deadline_ns)
{
	struct heap4_entry entry = { deadline_ns, timer };
	uint32_t place = heap->places[timer];

	if (place == UINT32_MAX)
		heap4_sift_up(heap, heap->count++, entry);
	else
		heap4_sift(heap, place, entry);
}

void heap4_remove(struct heap4 *heap, uint32_t timer)
{
	uint32_t place = heap->places[timer];
	struct heap4_entry last;

	if (place == UINT32_MAX)
		return;
	heap->places[timer] = UINT32_MAX;
	last = heap->entries[--heap->count];
	if (last.timer != timer)
		heap4_sift(heap, place, last);
}

uint32_t heap4_take(struct heap4 *heap, uint64_t now_ns, uint32_t *timers, uint32_t max)
{
	uint32_t taken = 0;

	while (taken < max && heap4_next_ns(heap) <= now_ns) {
		timers[taken] = heap->entries[0].timer;
		heap4_remove(heap, timers[taken++]);
	}
	return taken;
}
