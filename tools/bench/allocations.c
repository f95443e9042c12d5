/* SPDX-License-Identifier: MIT */
/*
 * Counts allocations. See allocations.h. This file defines malloc, calloc and realloc, which
 * replace the functions of glibc in the process. Each replacement counts the call and calls the
 * function of glibc. Without glibc, or under a sanitizer, the file counts nothing.
 */
#include "allocations.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static _Atomic(uint64_t) count;
static _Atomic(bool) counting;

void allocations_start(void)
{
	atomic_store(&count, 0);
	atomic_store(&counting, true);
}

uint64_t allocations_count(void)
{
	return atomic_load(&count);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t members, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static void allocations_add(void)
{
	if (atomic_load_explicit(&counting, memory_order_relaxed))
		atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

void *malloc(size_t bytes)
{
	allocations_add();
	return __libc_malloc(bytes);
}

void *calloc(size_t members, size_t bytes)
{
	allocations_add();
	return __libc_calloc(members, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	allocations_add();
	return __libc_realloc(memory, bytes);
}
#endif
