/* SPDX-License-Identifier: MIT */
/*
 * Tests law 6 as it is written: a call of arm, re-arm or cancel makes a bounded number of its own
 * steps, plus steps each of which another call has caused. A step is an atomic access. A step is
 * caused by another call if that call has written the accessed word since this call last saw it.
 * The word may also have been written before this call: if a weak memory shows it only now, it
 * counts as written now.
 */
#ifndef SIMULATION_OWN_STEPS_H
#define SIMULATION_OWN_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* The words that a call remembers; a call that touches more sees the others for the first time. */
#define OWN_WORDS 64

/* A call in progress, on the stack of its caller. */
struct own_steps {
	const char *name;
	uint64_t begin; /* stamp of the call's begin, which also is the call's identity */
	unsigned steps; /* steps so far */
	unsigned allowed;
	struct {
		const volatile void *word;
		uint64_t seen; /* stamp of this call's last access */
	} words[OWN_WORDS];
};

extern bool own_steps_counted; /* false: this run counts no steps */

/* Begin a run. */
void own_steps_start(bool counted);

/*
 * The current actor begins a call that works on `timers` timers, and ends it. Between the two, a
 * signal handler of the actor may make calls of its own. The handler counts as another thread, so
 * the caller surrounds the handler by own_steps_pause() and own_steps_resume().
 */
void own_steps_begin(struct own_steps *call, const char *name, unsigned timers);
void own_steps_end(const struct own_steps *call);
struct own_steps *own_steps_pause(void);
void own_steps_resume(struct own_steps *paused);

/*
 * The current actor makes a step on the word. `stale`: the step saw an older value than the newest.
 * If own_steps_counted is false, these functions need not be called.
 */
void own_steps_make(const volatile void *word, bool stale);
void own_steps_make_pair(volatile void *pair, bool stale);
/* The thread's step has written the word. In mode tso a buffered store comes here later. */
void own_steps_wrote(const volatile void *word, unsigned thread);

#endif
