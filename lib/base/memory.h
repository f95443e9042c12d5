/* SPDX-License-Identifier: MIT */
/*
 * Zeroed memory, reserved at an open and committed by the kernel at the first access of a page: a
 * hub for ten million timers costs little until they are armed.
 */
#ifndef TIMERHUB_MEMORY_H
#define TIMERHUB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct memory {
	void *base; /* NULL: none */
	size_t bytes;
};

/* Page-aligned, and without huge pages. 0 or a negative errno. */
int memory_reserve(struct memory *memory, size_t bytes);

/* A refusal is harmless. */
void memory_advise_huge(const struct memory *memory);

/*
 * As a memfd of this name, close-on-exec, in `*ret_fd`, which others may map to read; its size is
 * fixed, and since Linux 5.1 they can't write. After a failure the caller releases the memory, if
 * any, and closes `*ret_fd` unless it is negative.
 */
int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd);

/* In a forked child: zeroed and private. Signal-safe. */
void memory_unshare(const struct memory *memory);

/* Zeroed, in whole cache lines, for free(); or NULL. */
void *memory_allocate(size_t bytes);

void memory_release(struct memory *memory);

#endif
