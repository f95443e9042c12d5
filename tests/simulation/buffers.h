/* SPDX-License-Identifier: MIT */
/*
 * The store buffers of x86 processors, for the mode tso. A thread's stores reach memory in order,
 * but some time after they are made. Before a store reaches memory, only the thread that made the
 * store can read it. A locked instruction or a system call first writes the thread's whole buffer
 * to memory.
 */
#ifndef SIMULATION_BUFFERS_H
#define SIMULATION_BUFFERS_H

#include <stdint.h>

/* Begin a run with empty buffers, and discard stores of the last run. */
void buffers_begin(void);

/* Write all stores in the buffer of `thread` to memory. */
void buffer_drain(unsigned thread);
/* In a random part of the calls, write the oldest buffered store of a random thread to memory. */
void buffers_drain_some(void);

/* Store to the current actor's buffer, and load a word as this actor sees it. */
void buffer_store(volatile void *word, unsigned bytes, uint64_t value);
uint64_t buffer_load(const volatile void *word, unsigned bytes);

#endif
