/* SPDX-License-Identifier: MIT */
/*
 * What a load sees. In mode `sc` the memory is the machine's, which one thread runs on. In mode
 * `tso` each actor's stores wait in a buffer, as x86's do. In mode `c11` each atomic word keeps its
 * last stores, and a load returns any of them that C11 still allows, by seeded choice; data that
 * is not atomic is watched for races. README.md says what is modelled and what is not.
 *
 * The library comes here through hooks.h, which turns its atomic accesses into simulation_load()
 * and its sisters.
 */
#ifndef SIMULATION_MEMORY_H
#define SIMULATION_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/dice.h"
#include "scheduler.h"

/* At least as many as there are actors. */
#define MEMORY_THREADS 12

enum memory_mode { MEMORY_SC, MEMORY_TSO, MEMORY_C11 };

/* How much of each thread's past is known: everything up to and including that epoch of it. */
struct memory_view {
	int32_t epochs[MEMORY_THREADS];
};

struct memory {
	enum memory_mode mode;
	bool peeking; /* loads are the oracle's: the newest value, and no trace left */
	struct dice dice;
	uint32_t stale_one_in; /* how often a load sees less than the newest store that it may */
	uint32_t drain_one_in; /* how often a buffered store gets out (tso) */
};

extern struct memory memory;

/* The current actor begins a call, or reads the clock: the laws speak of what was before that. */
void memory_call(void);

/* What each actor knows of the others; and the current one. */
extern struct memory_view memory_views[MEMORY_THREADS];
static inline const struct memory_view *memory_known(void)
{
	return &memory_views[scheduler_self()];
}

/* Does it know of all of these? */
static inline bool view_has(const struct memory_view *view, const int32_t *epochs)
{
	int32_t beyond = 0;

	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		beyond |= epochs[i] > view->epochs[i];
	return beyond == 0;
}

/* The memory of a new run: nothing is known of any word. */
void memory_begin(enum memory_mode mode, struct dice dice);

/* The accesses from here on are the oracle's, or no longer. */
void memory_peek(bool peek);

/* The current actor has created this one; or has seen that this one is over. */
void memory_born(unsigned thread);
void memory_join(unsigned thread);

/* Release to `view`, acquire from it, or both, as under a lock. Each lets buffered stores out. */
void memory_publish(struct memory_view *view);
void memory_acquire(const struct memory_view *view);
void memory_lock(struct memory_view *view);

/* The current value of a word, as the kernel reads it; and a release store, as the kernel's. */
uint32_t memory_newest(const void *word);
void memory_tell(uint32_t *word, uint32_t value);

/*
 * Memory that was allocated: nothing of before counts. Memory that is freed: every access so far
 * must have happened before, and from here on there is none.
 */
void memory_allocated(const void *base, size_t bytes);
void memory_freed(const void *base, size_t bytes);

#endif
