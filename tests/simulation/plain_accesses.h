/* SPDX-License-Identifier: MIT */
/*
 * Checks the plain (not atomic) accesses of lib/ in mode `c11`. lib/ is compiled with
 * -fsanitize=thread but linked without ThreadSanitizer's library, so each plain access calls a
 * function here. A race fails the run.
 */
#ifndef SIMULATION_PLAIN_ACCESSES_H
#define SIMULATION_PLAIN_ACCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIN_BYTES ((size_t)4 << 20)
#define PLAIN_PAGE_BYTES ((size_t)4096)

/* All that the simulated kernel allocates. */
extern char plain_memory[PLAIN_BYTES];

void plain_begin(void);

void plain_watch(bool watch);

/* Memory was allocated: forgets all earlier accesses to it. */
void plain_allocated(const void *base, size_t bytes);
/* Memory is freed: fails if an access to it does not happen before the free. */
void plain_freed(const void *base, size_t bytes);

/* For atomic accesses. */
bool plain_is_freed(const volatile void *address);

#endif
