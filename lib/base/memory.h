/* SPDX-License-Identifier: MIT */
/*
 * Zeroed memory that is reserved when something is opened, and of which the kernel provides a page
 * only when it is first used. So a hub for ten million timers costs little until they are armed,
 * and nothing is allocated afterwards.
 */
#ifndef TIMERHUB_MEMORY_H
#define TIMERHUB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct memory {
	void *base; /* page-aligned; NULL: nothing is reserved */
	size_t bytes;
};

/* Reserves zeroed memory, without huge pages. Returns 0 or a negative errno. */
int memory_reserve(struct memory *memory, size_t bytes);

/* Asks the kernel for huge pages. If it refuses, nothing changes. */
void memory_advise_huge(const struct memory *memory);

/*
 * Reserves zeroed memory in a memfd, for others to read. After a failure, too, release it and close
 * *ret_fd.
 */
int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd);

/*
 * Replaces shared memory by zeroed private memory, in a forked child. Signal handlers may call it.
 */
void memory_unshare(const struct memory *memory);

/*
 * Allocates zeroed memory at the beginning of a cache line. Free it with free(). Returns NULL on
 * failure.
 */
void *memory_allocate(size_t bytes);

/* Unmaps memory that memory_reserve() or memory_reserve_shown() has reserved, if there is any. */
void memory_release(struct memory *memory);

#endif
