/* SPDX-License-Identifier: MIT */
/*
 * Checks the plain (not atomic) accesses of lib/ in mode c11. The files of lib/ are compiled with
 * -fsanitize=thread, but linked without ThreadSanitizer's library. At each plain access the
 * compiled code therefore calls a function of plain_accesses.c. If two plain accesses race, the run
 * fails.
 */
#ifndef SIMULATION_PLAIN_ACCESSES_H
#define SIMULATION_PLAIN_ACCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_BYTES ((size_t)4 << 20)
#define PLAIN_PAGE_BYTES ((size_t)4096)

/*
 * The memory whose accesses are checked. The simulated kernel allocates only from the array
 * plain_memory.
 */
extern char plain_memory[PLAIN_BYTES];

/* Begin a run, and forget all accesses of the last run. */
void plain_begin(void);

/* Switch the checks of plain accesses on or off. */
void plain_watch(bool watch);

/*
 * plain_allocated() forgets all accesses to the pages. plain_freed() fails if an access to the
 * pages does not happen before the free.
 */
void plain_allocated(const void *base, size_t bytes);
void plain_freed(const void *base, size_t bytes);

/*
 * Returns whether the address is in freed memory. memory_models.c uses this check for atomic
 * accesses.
 */
bool plain_is_freed(const volatile void *address);

#endif
