/* SPDX-License-Identifier: MIT */
/*
 * Chooses the value that each atomic load of the library returns. In mode `sc` a load returns the
 * newest value in the machine's memory. In mode `tso` each actor's stores wait in a buffer, as on
 * x86. In mode `c11` each atomic word keeps its last stores. If C11 allows a load to return several
 * of these stores, the seed chooses the returned store. In mode `c11` races of plain data are
 * failures. README.md says which behaviour is modelled.
 *
 * The library's atomic accesses call this module, because redirect_atomics.h replaces them by
 * simulation_load() and similar functions.
 */
#ifndef SIMULATION_MEMORY_MODELS_H
#define SIMULATION_MEMORY_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/dice.h"
#include "scheduler.h"

/* Number of threads that can have a view. This number must be at least ACTORS_MAX. */
#define MEMORY_THREADS 12

enum memory_mode { MEMORY_SC, MEMORY_TSO, MEMORY_C11 };

/*
 * A view says which accesses of each thread are known. All accesses of thread i up to and including
 * the epoch epochs[i] are known.
 */
struct memory_view {
	int32_t epochs[MEMORY_THREADS];
};

struct memory {
	enum memory_mode mode;
	/*
	 * True while a check reads the library's words. Each load then returns the newest value,
	 * and the load is not recorded.
	 */
	bool peeking;
	struct dice dice;
	/* if a load may return an older store, it does so with the probability 1 / stale_one_in */
	uint32_t stale_one_in;
	/*
	 * In mode tso, a buffered store is written to memory at an access with the probability
	 * 1 / drain_one_in.
	 */
	uint32_t drain_one_in;
};

extern struct memory memory;

/*
 * The current actor begins a call of the library, or the owner reads the clock. The actor's seq_cst
 * loads then miss no seq_cst store that was made before now.
 */
void memory_call(void);

/*
 * The view of each actor, by the actor's number. memory_known() returns the view of the current
 * actor.
 */
extern struct memory_view memory_views[MEMORY_THREADS];
static inline const struct memory_view *memory_known(void)
{
	return &memory_views[scheduler_self()];
}

/* Returns whether the view contains all of the epochs, one of each thread. */
static inline bool view_has(const struct memory_view *view, const int32_t *epochs)
{
	int32_t beyond = 0;

	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		beyond |= epochs[i] > view->epochs[i];
	return beyond == 0;
}

/* Begin a run in this memory mode. The atomic words of earlier runs are forgotten. */
void memory_begin(enum memory_mode mode, struct dice dice);

/*
 * If `peek` is true, begin a check of the library's words. If `peek` is false, end the check. The
 * accesses of a check are not simulated.
 */
void memory_peek(bool peek);

/* Record that the current actor has created this thread, or has seen its end. */
void memory_born(unsigned thread);
void memory_join(unsigned thread);

/*
 * memory_publish() releases to `view`. memory_acquire() acquires from `view`. memory_lock()
 * acquires and releases, like a lock. memory_publish(), memory_acquire() and memory_lock() begin by
 * writing the actor's buffered stores to memory.
 */
void memory_publish(struct memory_view *view);
void memory_acquire(const struct memory_view *view);
void memory_lock(struct memory_view *view);

/*
 * memory_newest() returns the current value of a word, as the kernel reads it. memory_tell() makes
 * a release store to a word, as the kernel does.
 */
uint32_t memory_newest(const void *word);
void memory_tell(uint32_t *word, uint32_t value);

/*
 * memory_allocated() forgets all earlier accesses to the memory. memory_freed() fails if an access
 * to the memory did not happen before the free. After memory_freed(), any access to the memory
 * fails.
 */
void memory_allocated(const void *base, size_t bytes);
void memory_freed(const void *base, size_t bytes);

#endif
