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

/*
 * Reserves zeroed memory. The kernel is asked not to use huge pages for it, because each first
 * access would then commit a whole one. Returns 0 or a negative errno.
 */
int memory_reserve(struct memory *memory, size_t bytes);

/*
 * Asks the kernel to use huge pages for this memory, although memory_reserve() has asked it not to.
 * Does nothing if the kernel refuses.
 */
void memory_advise_huge(const struct memory *memory);

/*
 * Reserves zeroed memory in a memfd, which other processes can map to read. Stores its descriptor
 * in *ret_fd.
 * After a failure the caller must still release the memory, and close *ret_fd unless it is
 * negative.
 */
int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd);

/*
 * In a forked child, replaces memory that the child shares with its parent by zeroed private memory
 * at the same address. Otherwise the child's writes would change the parent's memory, which other
 * processes read. Safe in a signal handler.
 */
void memory_unshare(const struct memory *memory);

/*
 * Allocates zeroed memory that starts at the beginning of a cache line. Free it by free(). Returns
 * NULL if there is no memory.
 */
void *memory_allocate(size_t bytes);

/* Unmaps memory that memory_reserve() or memory_reserve_shown() has reserved, if there is any. */
void memory_release(struct memory *memory);

#endif
