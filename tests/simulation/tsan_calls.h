/* SPDX-License-Identifier: MIT */
/*
 * Defines the functions that code compiled with -fsanitize=thread calls at each plain access.
 * Exactly one file of a program includes this header. Before that it must define two macros:
 *
 *   - TSAN_ACCESS(address, bytes, write): an access of any size, at any address
 *   - TSAN_ALIGNED(address, bytes, write): an access of 1, 2, 4, 8 or 16 bytes, at a multiple of
 *     its size
 */
#ifndef TIMERHUB_SIMULATION_TSAN_CALLS_H
#define TIMERHUB_SIMULATION_TSAN_CALLS_H

#include <stddef.h>
#include <string.h>

#define TSAN_CALLS(bytes)                                                                          \
	void __tsan_read##bytes(const void *address);                                              \
	void __tsan_write##bytes(const void *address);                                             \
	void __tsan_unaligned_read##bytes(const void *address);                                    \
	void __tsan_unaligned_write##bytes(const void *address);                                   \
	void __tsan_read##bytes(const void *address)                                               \
	{                                                                                          \
		TSAN_ALIGNED(address, bytes, false);                                               \
	}                                                                                          \
	void __tsan_write##bytes(const void *address)                                              \
	{                                                                                          \
		TSAN_ALIGNED(address, bytes, true);                                                \
	}                                                                                          \
	void __tsan_unaligned_read##bytes(const void *address)                                     \
	{                                                                                          \
		TSAN_ACCESS(address, bytes, false);                                                \
	}                                                                                          \
	void __tsan_unaligned_write##bytes(const void *address)                                    \
	{                                                                                          \
		TSAN_ACCESS(address, bytes, true);                                                 \
	}
TSAN_CALLS(1)
TSAN_CALLS(2)
TSAN_CALLS(4)
TSAN_CALLS(8)
TSAN_CALLS(16)

void __tsan_init(void);
void __tsan_func_entry(const void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(const void *address, size_t bytes);
void __tsan_write_range(const void *address, size_t bytes);

void __tsan_init(void)
{
}

void __tsan_func_entry(const void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(const void *address, size_t bytes)
{
	TSAN_ACCESS(address, bytes, false);
}

void __tsan_write_range(const void *address, size_t bytes)
{
	TSAN_ACCESS(address, bytes, true);
}

/* Newer compilers call these functions in place of memcpy(), memmove() and memset(). */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	TSAN_ACCESS(from, bytes, false);
	TSAN_ACCESS(to, bytes, true);
	return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	TSAN_ACCESS(from, bytes, false);
	TSAN_ACCESS(to, bytes, true);
	return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int byte, size_t bytes)
{
	TSAN_ACCESS(to, bytes, true);
	return memset(to, byte, bytes);
}

#endif
