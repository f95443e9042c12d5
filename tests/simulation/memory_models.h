/* SPDX-License-Identifier: MIT */
/*
 * Decides which value each atomic load returns. In mode `sc` it is the newest. In mode `c11` a word
 * keeps its last stores, and the seed chooses among those that C11 allows; races of plain data fail
 * the run. README.md says what is modelled. redirect_atomics.h brings the library's accesses here.
 */
#ifndef SIMULATION_MEMORY_MODELS_H
#define SIMULATION_MEMORY_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/dice.h"
#include "scheduler.h"

/* threads with a view, at least ACTORS_MAX */
#define MEMORY_THREADS 12

enum memory_mode { MEMORY_SC, MEMORY_C11 };

/* Known are all accesses of thread i up to its epoch epochs[i]. */
struct memory_view {
	int32_t epochs[MEMORY_THREADS];
};

struct memory {
	enum memory_mode mode;
	/* the test inspects lib/'s words: it gets the newest values, and no access is recorded */
	bool peeking;
	struct dice dice;
	uint32_t stale_one_in; /* n: one in n loads that may return an older store does so */
};

extern struct memory memory;

/* A call begins, or the owner reads the clock: its seq_cst loads miss no earlier seq_cst store. */
void memory_call(void);

/* By the actor's number. */
extern struct memory_view memory_views[MEMORY_THREADS];
static inline const struct memory_view *memory_known(void)
{
	return &memory_views[scheduler_self()];
}

/* All of them. */
static inline bool view_has(const struct memory_view *view, const int32_t *epochs)
{
	int32_t beyond = 0;

	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		beyond |= epochs[i] > view->epochs[i];
	return beyond == 0;
}

/* Forgets the words of earlier runs. */
void memory_begin(enum memory_mode mode, struct dice dice);

/* Begins or ends a check, whose accesses are not simulated. */
void memory_peek(bool peek);

/* The current actor has created the thread (memory_born()), or has waited for its end. */
void memory_born(unsigned thread);
void memory_join(unsigned thread);

/* The current actor releases to `view`, acquires from it, or does both, as a lock does. */
void memory_publish(struct memory_view *view);
void memory_acquire(const struct memory_view *view);
void memory_lock(struct memory_view *view);

/* The simulated kernel reads a word's newest value, or stores a value with release order. */
uint32_t memory_newest(const void *word);
void memory_tell(uint32_t *word, uint32_t value);

/* Memory was allocated: forgets all earlier accesses to it. */
void memory_allocated(const void *base, size_t bytes);
/* Memory is freed: fails if an access does not happen before the free. Any later access fails. */
void memory_freed(const void *base, size_t bytes);

#endif
