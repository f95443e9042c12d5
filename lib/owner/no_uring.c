/* SPDX-License-Identifier: MIT */
/*
 * Replaces sleeper_uring.c in a library built without liburing (-Dio_uring=disabled). Opening the
 * sleeper fails, as on a kernel without io_uring. Tested by the suites in such a build, and by the
 * test `without io_uring` of tests/packaging.
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
