/* SPDX-License-Identifier: MIT */
/*
 * A textbook 4-ary heap of timers by deadline, with the index of each timer's entry, so that a
 * timer can be moved. It has no lock and reads no clock.
 */
#ifndef BENCH_HEAP4_H
#define BENCH_HEAP4_H

#include <stdint.h>

struct heap4_entry {
	uint64_t deadline_ns; /* here too, so that a comparison reads no other memory */
	uint32_t timer;
};

struct heap4 {
	struct heap4_entry *entries;
	uint32_t *places; /* for each timer: the index of its entry, or UINT32_MAX */
	uint32_t count;
};

void heap4_open(struct heap4 *heap, uint32_t timers);

/* Inserts a timer, or moves it to the new deadline. */
void heap4_put(struct heap4 *heap, uint32_t timer, uint64_t deadline_ns);
void heap4_remove(struct heap4 *heap, uint32_t timer);

/* Returns the earliest deadline, or UINT64_MAX if the heap is empty. */
static inline uint64_t heap4_next_ns(const struct heap4 *heap)
{
	return heap->count > 0 ? heap->entries[0].deadline_ns : UINT64_MAX;
}

/* Removes up to `max` due timers, in the order of their deadlines, and returns their number. */
uint32_t heap4_take(struct heap4 *heap, uint64_t now_ns, uint32_t *timers, uint32_t max);

#endif
