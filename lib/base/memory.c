/* SPDX-License-Identifier: MIT */
/*
 * Reserves memory by mmap(2), for the library alone, or in a memfd that other processes may map to
 * read. memory.h says what for.
 */
#define _GNU_SOURCE
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/descriptor.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16 /* Linux 5.1 */
#endif

int memory_reserve(struct memory *memory, size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	*memory = (struct memory){ .base = base, .bytes = bytes };
	/*
	 * Where the kernel uses huge pages for everything, as Debian's does, the first access would
	 * otherwise commit 2 MB. An error is ignored, because only a kernel without huge pages
	 * returns one.
	 */
	(void)madvise(base, bytes, MADV_NOHUGEPAGE);
	return 0;
}

void memory_advise_huge(const struct memory *memory)
{
	(void)madvise(memory->base, memory->bytes, MADV_HUGEPAGE);
}

/*
 * Creates a memfd that other processes may read. Linux 6.3 and later expect MFD_NOEXEC_SEAL, which
 * says that the file is not a program. Older kernels refuse this flag with EINVAL, so try again
 * without it.
 */
static int memory_open_shown(const char *name)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = DESCRIPTOR_ABOVE_STDIO(memfd_create(name, flags | MFD_NOEXEC_SEAL));

	return fd == -EINVAL ? DESCRIPTOR_ABOVE_STDIO(memfd_create(name, flags)) : fd;
}

/*
 * Gives a memfd its size. First checks the process's limit on file sizes, because the kernel kills
 * most programs that exceed it (SIGXFSZ).
 */
static int memory_resize_shown(int fd, size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
		return -EFBIG;
	return ftruncate(fd, (off_t)bytes) < 0 ? -errno : 0;
}

/*
 * Fixes the size of a memfd. Since Linux 5.1, also forbids write(2) and new writable mappings. The
 * mapping that the caller has made before stays writable.
 */
static int memory_seal(int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0)
		return 0;
	return errno == EINVAL && fcntl(fd, F_ADD_SEALS, seals) == 0 ? 0 : -errno;
}

int memory_reserve_shown(struct memory *memory, size_t bytes, const char *name, int *ret_fd)
{
	int fd = *ret_fd = memory_open_shown(name);
	int result = fd < 0 ? fd : memory_resize_shown(fd, bytes);
	void *base;

	if (result < 0)
		return result;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*memory = (struct memory){ .base = base, .bytes = bytes };
	return memory_seal(fd);
}

void memory_unshare(const struct memory *memory)
{
	/* If mmap() fails, the child still works, but it then counts in its parent's statistics. */
	(void)mmap(memory->base, memory->bytes, PROT_READ | PROT_WRITE,
	           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void memory_release(struct memory *memory)
{
	if (memory->base)
		(void)munmap(memory->base, memory->bytes);
	*memory = (struct memory){ .base = NULL };
}

void *memory_allocate(size_t bytes)
{
	void *memory = NULL;

	if (posix_memalign(&memory, CACHE_LINE_BYTES, bytes) != 0)
		return NULL;
	return memset(memory, 0, bytes);
}
