/* SPDX-License-Identifier: MIT */
/*
 * The values that a load returns. In mode `sc` the memory is the machine's, used by one thread. In
 * mode `tso` each actor's stores wait in a buffer, as x86's do. In mode `c11` each atomic word
 * keeps its last stores. A load returns any of these stores that C11 still allows, by seeded
 * choice, and races of plain data are failures. README.md says which behaviour is modelled.
 *
 * The library's atomic accesses come here through redirect_atomics.h, which replaces them by
 * simulation_load() and similar calls.
 */
#ifndef SIMULATION_MEMORY_MODELS_H
#define SIMULATION_MEMORY_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/dice.h"
#include "scheduler.h"

/* The number of threads, at least the number of actors. */
#define MEMORY_THREADS 12

enum memory_mode { MEMORY_SC, MEMORY_TSO, MEMORY_C11 };

/* The known part of each thread's past: everything up to and including that epoch. */
struct memory_view {
	int32_t epochs[MEMORY_THREADS];
};

struct memory {
	enum memory_mode mode;
	bool peeking; /* the oracle loads: the newest value is returned, and nothing is recorded */
	struct dice dice;
	uint32_t stale_one_in; /* one load in this number returns an older store */
	uint32_t drain_one_in; /* in tso, one step in this number empties a buffer slot */
};

extern struct memory memory;

/*
 * The current actor begins a call, or reads the clock. The actor must see all calls that returned
 * before.
 */
void memory_call(void);

/* The view of each actor. memory_known() returns the view of the current actor. */
extern struct memory_view memory_views[MEMORY_THREADS];
static inline const struct memory_view *memory_known(void)
{
	return &memory_views[scheduler_self()];
}

/* Returns whether the view contains all of these epochs. */
static inline bool view_has(const struct memory_view *view, const int32_t *epochs)
{
	int32_t beyond = 0;

	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		beyond |= epochs[i] > view->epochs[i];
	return beyond == 0;
}

/* Begin a run, in which no location is known yet. */
void memory_begin(enum memory_mode mode, struct dice dice);

/* Begin or end the oracle's accesses. */
void memory_peek(bool peek);

/* The current actor has created this thread, or has seen its end. */
void memory_born(unsigned thread);
void memory_join(unsigned thread);

/*
 * Release to `view`, acquire from it, or both, as under a lock. Each of these first writes the
 * buffered stores to memory.
 */
void memory_publish(struct memory_view *view);
void memory_acquire(const struct memory_view *view);
void memory_lock(struct memory_view *view);

/*
 * Returns the current value of a word, as the kernel reads it. The second function makes a release
 * store, as the kernel does.
 */
uint32_t memory_newest(const void *word);
void memory_tell(uint32_t *word, uint32_t value);

/*
 * After memory_allocated(), accesses before the allocation do not count. At memory_freed(), every
 * access must have happened before, and no access may follow.
 */
void memory_allocated(const void *base, size_t bytes);
void memory_freed(const void *base, size_t bytes);

#endif
