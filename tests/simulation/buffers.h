/* SPDX-License-Identifier: MIT */
/*
 * x86's store buffers, for mode tso: a thread's stores get out one after the other, some time
 * later; until then only the thread itself sees them. Locked instructions and the kernel wait for
 * all of them.
 */
#ifndef SIMULATION_BUFFERS_H
#define SIMULATION_BUFFERS_H

#include <stdint.h>

/* All are empty. */
void buffers_begin(void);

/* Let all stores of this thread out. */
void buffer_drain(unsigned thread);
/* Now and then, a store of some thread. */
void buffers_drain_some(void);

/* Store and load, as the current actor's. */
void buffer_store(volatile void *word, unsigned bytes, uint64_t value);
uint64_t buffer_load(const volatile void *word, unsigned bytes);

#endif
