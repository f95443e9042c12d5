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
 * Reserves memory, and asks the kernel not to back it with huge pages, of which one would be
 * committed for each first byte. Returns 0 or a negative errno.
 */
int memory_reserve(struct memory *memory, size_t bytes);

/* Asks the kernel to back the memory with huge pages after all. A refusal does no harm. */
void memory_advise_huge(const struct memory *memory);

/*
 * Reserves memory that other processes can map to read: a memfd of this name, whose descriptor is
 * stored in *ret_fd. Its size is fixed, and since Linux 5.1 others cannot write to it. After a
 * failure the caller releases the memory, if there is any, and closes *ret_fd unless it is
 * negative.
 */
int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd);

/*
 * Replaces shared memory by zeroed private memory, in a forked child, which must not write to what
 * others read as the parent's. It can be called in a signal handler.
 */
void memory_unshare(const struct memory *memory);

/*
 * Allocates zeroed memory in whole cache lines, to be freed by free(). Returns NULL if there is
 * none.
 */
void *memory_allocate(size_t bytes);

/* Gives the memory back. */
void memory_release(struct memory *memory);

#endif
