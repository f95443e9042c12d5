/* SPDX-License-Identifier: MIT */
/*
 * Memory reserved at open: zeroed, committed by the kernel page by page as it is touched, so that a
 * hub for ten million timers costs nothing until they are armed.
 */
#ifndef TIMERHUB_MEMORY_H
#define TIMERHUB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct memory {
	void *base; /* NULL: none */
	size_t bytes;
};

/* 0, or a negative errno. Page aligned. */
int memory_reserve(struct memory *memory, size_t bytes);

/* Ask the kernel to back it with huge pages. If the kernel refuses, nothing is lost. */
void memory_advise_huge(const struct memory *memory);

/* As memory_reserve(), and in a forked child it is zeroed again. */
int memory_reserve_wiped_on_fork(struct memory *memory, size_t bytes);

/*
 * As memory_reserve(), but the memory is a memfd of this name, close-on-exec, whose descriptor goes
 * to `*ret_fd`: other processes may map it to read. Its size is fixed, and since Linux 5.1 other
 * processes cannot write to it.
 */
int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd);

/* Put zeroed memory of our own in its place. Signal-safe; for a forked child. */
void memory_unshare(const struct memory *memory);

/* Allocate, zeroed and aligned to a cache line: free() it. NULL if there is none. */
void *memory_allocate(size_t bytes);

/* Fine if there is none. */
void memory_release(struct memory *memory);

#endif
