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

/* Nothing is known of any memory. */
void plain_begin(void);

/* Memory that was allocated, or is freed: see memory_allocated() and memory_freed(). */
void plain_allocated(const void *base, size_t bytes);
void plain_freed(const void *base, size_t bytes);

/* Is it in memory that was freed? Atomic words too are asked about. */
bool plain_is_freed(uintptr_t address);

#endif
