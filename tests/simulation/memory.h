/* SPDX-License-Identifier: MIT */
/*
 * The values that a load returns. In mode `sc` the memory is the machine's, used by one thread. In
 * mode `tso` each actor's stores wait in a buffer, as x86's do. In mode `c11` each atomic word
 * keeps its last stores. A load returns any of them that C11 still allows, by seeded choice, and
 * races of plain data are failures. README.md says which behaviour is modelled.
 *
 * The library's atomic accesses come here through hooks.h, which replaces them by simulation_load()
 * and similar calls.
 */
#ifndef SIMULATION_MEMORY_H
#define SIMULATION_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/dice.h"
#include "scheduler.h"

/* At least the number of actors. */
#define MEMORY_THREADS 12

enum memory_mode { MEMORY_SC, MEMORY_TSO, MEMORY_C11 };

/* The known part of each thread's past: everything up to and including that epoch. */
struct memory_view {
	int32_t epochs[MEMORY_THREADS];
};

struct memory {
	enum memory_mode mode;
	bool peeking; /* loads are the oracle's: newest value, no record */
	struct dice dice;
	uint32_t stale_one_in; /* chance that a load returns an older store: 1 in this */
	uint32_t drain_one_in; /* chance that a buffered store gets out: 1 in this (tso) */
};

extern struct memory memory;

/*
 * The current actor begins a call, or reads the clock. It must see all calls that returned before.
 */
void memory_call(void);

/* By actor, its view. The function returns the current actor's. */
extern struct memory_view memory_views[MEMORY_THREADS];
static inline const struct memory_view *memory_known(void)
{
	return &memory_views[scheduler_self()];
}

/* Does the view contain all of these epochs? */
static inline bool view_has(const struct memory_view *view, const int32_t *epochs)
{
	int32_t beyond = 0;

	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		beyond |= epochs[i] > view->epochs[i];
	return beyond == 0;
}

/* Begin a run. No location is known. */
void memory_begin(enum memory_mode mode, struct dice dice);

/* Begin or end the oracle's accesses. */
void memory_peek(bool peek);

/* The current actor has created this thread, or has seen its end. */
void memory_born(unsigned thread);
void memory_join(unsigned thread);

/*
 * Release to `view`, acquire from it, or both, as under a lock. Each writes the buffered stores to
 * memory first.
 */
void memory_publish(struct memory_view *view);
void memory_acquire(const struct memory_view *view);
void memory_lock(struct memory_view *view);

/*
 * Returns the current value of a word, as the kernel reads it. The second is the kernel's release
 * store.
 */
uint32_t memory_newest(const void *word);
void memory_tell(uint32_t *word, uint32_t value);

/*
 * Memory was allocated: earlier accesses do not count. Memory is freed: every access must have
 * happened before, and none may follow.
 */
void memory_allocated(const void *base, size_t bytes);
void memory_freed(const void *base, size_t bytes);

#endif
