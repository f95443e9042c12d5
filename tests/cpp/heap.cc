/* SPDX-License-Identifier: MIT */
/*
 * Implements an operator new that counts allocations. See heap.hpp. The operators have a file of
 * their own, so that the compiler cannot inline them.
 */
#include "heap.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

#include "expect.hpp"

unsigned heap_allocated;
bool heap_refuses;

static void *allocate(std::size_t size)
{
	if (heap_refuses)
		return nullptr;
	heap_allocated++;
	return std::malloc(size);
}

void *operator new(std::size_t size)
{
	void *const memory = allocate(size);

	expect(memory);
	return memory;
}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
	return allocate(size);
}

void operator delete(void *memory) noexcept
{
	std::free(memory);
}

void operator delete(void *memory, std::size_t) noexcept
{
	std::free(memory);
}

void operator delete(void *memory, const std::nothrow_t &) noexcept
{
	std::free(memory);
}
