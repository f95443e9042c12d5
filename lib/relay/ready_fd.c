/* SPDX-License-Identifier: MIT */
/* Implements the flags of ready_fd.h by eventfd(2). */
#include "relay/ready_fd.h"

#include <sys/eventfd.h>

#include "base/descriptor.h"

int ready_fd_open(void)
{
	return DESCRIPTOR_ABOVE_STDIO(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void ready_fd_raise(int flag)
{
	(void)eventfd_write(flag, 1); /* the write fails only if the eventfd's count is near 2^64 */
}

void ready_fd_lower(int flag)
{
	eventfd_t count;

	(void)eventfd_read(flag, &count); /* the read fails only if the eventfd's count is 0 */
}
