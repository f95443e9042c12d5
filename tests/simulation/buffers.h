/* SPDX-License-Identifier: MIT */
/*
 * The store buffers of x86, for the mode tso. A thread's stores reach memory in order and some time
 * later. Until then only the thread itself reads them. A locked instruction or a system call first
 * writes the whole buffer to memory.
 */
#ifndef SIMULATION_BUFFERS_H
#define SIMULATION_BUFFERS_H

#include <stdint.h>

/* Empty all buffers. */
void buffers_begin(void);

/* Write all buffered stores of this thread to memory. */
void buffer_drain(unsigned thread);
/* Write a store of a random thread to memory, in some calls only. */
void buffers_drain_some(void);

/* Store and load for the current actor. */
void buffer_store(volatile void *word, unsigned bytes, uint64_t value);
uint64_t buffer_load(const volatile void *word, unsigned bytes);

#endif
