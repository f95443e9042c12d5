/* SPDX-License-Identifier: MIT */
/*
 * Reserves zeroed memory when a hub, a queue or a loop opens. The kernel commits a page at its
 * first access. A hub for ten million timers therefore costs little until the timers are armed.
 */
#ifndef TIMERHUB_MEMORY_H
#define TIMERHUB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct memory {
	void *base; /* start of the memory, or NULL if there is none */
	size_t bytes;
};

/* Reserve memory, page-aligned. Returns 0, or a negative errno. */
int memory_reserve(struct memory *memory, size_t bytes);

/* Ask the kernel to back the memory with huge pages. The kernel may refuse, which is harmless. */
void memory_advise_huge(const struct memory *memory);

/*
 * Like memory_reserve(), but the memory is a memfd of this name, close-on-exec, with its descriptor
 * in `*ret_fd`. Other processes may map the memfd to read. The memfd's size is fixed, and since
 * Linux 5.1 other processes cannot write to it. After a failure the caller releases the memory, if
 * there is any, and closes `*ret_fd` unless it is negative.
 */
int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd);

/* In a forked child, replace the memory by zeroed private memory. The call is signal-safe. */
void memory_unshare(const struct memory *memory);

/* Allocate zeroed memory, aligned to a cache line. Returns NULL on failure. free() releases it. */
void *memory_allocate(size_t bytes);

/* Release the memory. If `memory->base` is NULL, do nothing. */
void memory_release(struct memory *memory);

#endif
