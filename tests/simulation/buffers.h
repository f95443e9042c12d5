/* SPDX-License-Identifier: MIT */
/*
 * x86's store buffers, for mode tso. A thread's stores reach memory in order and some time later.
 * Until then only the thread itself reads them. Locked instructions and system calls first write
 * all of them to memory.
 */
#ifndef SIMULATION_BUFFERS_H
#define SIMULATION_BUFFERS_H

#include <stdint.h>

/* Empty all buffers. */
void buffers_begin(void);

/* Write all buffered stores of this thread to memory. */
void buffer_drain(unsigned thread);
/* Now and then, write a store of some thread to memory. */
void buffers_drain_some(void);

/* Store and load for the current actor. */
void buffer_store(volatile void *word, unsigned bytes, uint64_t value);
uint64_t buffer_load(const volatile void *word, unsigned bytes);

#endif
