/* SPDX-License-Identifier: MIT */
/*
 * Accesses of lib/ that are not atomic, in mode c11. Compiled with -fsanitize=thread, but linked
 * without its library, lib/ calls plain.c at each of them; two that race are a failure.
 */
#ifndef SIMULATION_PLAIN_H
#define SIMULATION_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_BYTES ((size_t)4 << 20)
#define PLAIN_PAGE_BYTES ((size_t)4096)

/* The memory that is watched: the simulated kernel gives out pages of it, and no other memory. */
extern char plain_memory[PLAIN_BYTES];

/* Nothing was accessed yet. */
void plain_begin(void);

/* Are accesses of interest from here on? */
void plain_watch(bool watch);

/* Pages that were allocated, or are freed: see memory_allocated() and memory_freed(). */
void plain_allocated(const void *base, size_t bytes);
void plain_freed(const void *base, size_t bytes);

/* Is it in memory that was freed? Atomic words too are asked about. */
bool plain_is_freed(const volatile void *address);

#endif
