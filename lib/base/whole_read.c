/* SPDX-License-Identifier: MIT */
/*
 * Reads a small file to its end, also if read(2) returns it in parts (whole_read.h). Tested by
 * tests/relay/servers_test.py and tests/store.
 */
#include "base/whole_read.h"

#include <errno.h>
#include <unistd.h>

long whole_read(int fd, void *buffer, size_t bytes)
{
	size_t length = 0;

	while (length < bytes) {
		ssize_t count = read(fd, (char *)buffer + length, bytes - length);

		if (count < 0 && errno != EINTR)
			return -errno;
		if (count == 0)
			break;
		length += count > 0 ? (size_t)count : 0;
	}
	return (long)length;
}
