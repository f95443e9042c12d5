/* SPDX-License-Identifier: MIT */
/*
 * Checks law 6 as it is written: an arm, a re-arm or a cancel makes a bounded number of steps by
 * itself, and further ones only if other calls have caused them. A step is an atomic access.
 * Another call has caused it if it has written the word since this call last saw the word, or if
 * weak memory shows this call the write only now.
 */
#ifndef SIMULATION_OWN_STEPS_H
#define SIMULATION_OWN_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* beyond, a word counts as seen for the first time */
#define OWN_WORDS 64

/* On its caller's stack. */
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
 * A call on `timers` timers begins. A signal handler counts as another thread: own_steps_pause()
 * is called before it, and own_steps_resume() after it.
 */
void own_steps_begin(struct own_steps *call, const char *name, unsigned timers);
void own_steps_end(const struct own_steps *call);
struct own_steps *own_steps_pause(void);
void own_steps_resume(struct own_steps *paused);

/* `stale`: an older value than the newest. Not needed while own_steps_counted is false. */
void own_steps_make(const volatile void *word, bool stale);
void own_steps_make_pair(volatile void *pair, bool stale);
void own_steps_wrote(const volatile void *word);

#endif
