/* SPDX-License-Identifier: MIT */
/*
 * Plain accesses of lib/ in mode c11. lib/ is compiled with -fsanitize=thread but linked without
 * its library, so it calls plain_accesses.c at each plain access. Two plain accesses that race are
 * a failure.
 */
#ifndef SIMULATION_PLAIN_ACCESSES_H
#define SIMULATION_PLAIN_ACCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_BYTES ((size_t)4 << 20)
#define PLAIN_PAGE_BYTES ((size_t)4096)

/* The watched memory. The simulated kernel allocates only from here. */
extern char plain_memory[PLAIN_BYTES];

/* Forget all accesses. */
void plain_begin(void);

/* Switch the checks on or off. */
void plain_watch(bool watch);

/*
 * Call these when pages were allocated and before they are freed, for the reason given at
 * memory_allocated() and memory_freed().
 */
void plain_allocated(const void *base, size_t bytes);
void plain_freed(const void *base, size_t bytes);

/* Returns whether the address is in freed memory. The atomic accesses use this check too. */
bool plain_is_freed(const volatile void *address);

#endif
