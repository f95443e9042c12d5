/* SPDX-License-Identifier: MIT */
/*
 * The store buffers of x86, for the mode `tso`. A thread's stores wait in its buffer and reach
 * memory in order, some time later. Until then only this thread reads them. A locked instruction or
 * a system call writes the whole buffer to memory.
 */
#ifndef SIMULATION_BUFFERS_H
#define SIMULATION_BUFFERS_H

#include <stdint.h>

void buffers_begin(void);

void buffer_drain(unsigned thread);
/* In a random part of the calls, the oldest store of a random thread. */
void buffers_drain_some(void);

/* Into the current actor's buffer; a load as this actor sees the word. */
void buffer_store(volatile void *word, unsigned bytes, uint64_t value);
uint64_t buffer_load(const volatile void *word, unsigned bytes);

#endif
