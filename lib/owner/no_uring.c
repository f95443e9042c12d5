/* SPDX-License-Identifier: MIT */
/*
 * Replaces sleeper_uring.c in a library built without liburing (-Dio_uring=disabled).
 * sleeper_open_uring() fails, as on a kernel without io_uring. This file is tested by the suites of
 * a build without liburing, and by the test `without io_uring` of tests/packaging.
 */
#include <errno.h>

#include "owner/sleeper.h"

int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd)
{
	(void)sleeper;
	(void)bell;
	(void)deadline_fd;
	return -ENOSYS;
}
