/* SPDX-License-Identifier: MIT */
/* See memory.h. The only home of sys/mman.h. For open and close; tested through them. */
#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <sys/mman.h>

int memory_reserve(struct memory *memory, size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	*memory = (struct memory){ .base = base, .bytes = bytes };
	return 0;
}

int memory_reserve_wiped_on_fork(struct memory *memory, size_t bytes)
{
	struct memory reserved = { .base = NULL };
	int result = memory_reserve(&reserved, bytes);

	if (result == 0 && madvise(reserved.base, bytes, MADV_WIPEONFORK) < 0) {
		result = -errno;
		memory_release(&reserved);
	}
	if (result == 0)
		*memory = reserved;
	return result;
}

void memory_release(struct memory *memory)
{
	if (memory->base)
		(void)munmap(memory->base, memory->bytes);
	*memory = (struct memory){ .base = NULL };
}
