/* SPDX-License-Identifier: MIT */
/*
 * Implements the eventfd of bell.h. No other file of the core includes sys/eventfd.h. The tests of
 * the notifier and of the two sleepers test the bell.
 */
#define _GNU_SOURCE
#include "base/bell.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

int bell_open(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void bell_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

static bool bell_write(int fd)
{
	uint64_t one = 1;

	return syscall(SYS_write, fd, &one, sizeof(one)) == sizeof(one);
}

void bell_ring(int fd)
{
	int saved_errno = errno;

	/*
	 * EAGAIN means that another writer has filled the counter. A failed write gives an
	 * edge-triggered poller no edge. bell_ring() therefore clears the counter and writes again.
	 * If the second write fails too, another writer has filled the cleared counter again. That
	 * writer's write gave the poller an edge.
	 */
	if (!bell_write(fd) && errno == EAGAIN) {
		bell_clear(fd);
		(void)bell_write(fd);
	}
	errno = saved_errno;
}

void bell_clear(int fd)
{
	int saved_errno = errno;
	uint64_t count;

	/* If the eventfd is already clear, read() fails with EAGAIN, and nothing is left to do. */
	(void)syscall(SYS_read, fd, &count, sizeof(count));
	errno = saved_errno;
}
