/* SPDX-License-Identifier: MIT */
/*
 * Closes the descriptors with the numbers 0, 1 and 2 that the library was given and must not use
 * (descriptor.h). Tested by tests/service/test_descriptors.c, tests/store and tests/relay.
 */
#define _GNU_SOURCE
#include "base/descriptor.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

bool descriptors_hold(struct descriptors_low *low, int fd)
{
	if (fd < 0 || fd >= DESCRIPTORS_LOW)
		return false;
	low->held[fd] = true;
	return true;
}

int descriptors_release(const struct descriptors_low *low, int fd)
{
	int result = fd < 0 ? -errno : fd;

	for (int i = 0; i < DESCRIPTORS_LOW; i++)
		if (low->held[i])
			(void)syscall(SYS_close, i); /* close(2) is a cancellation point */
	return result;
}
