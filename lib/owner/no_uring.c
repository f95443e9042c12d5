/* SPDX-License-Identifier: MIT */
/*
 * Replaces sleeper_uring.c if the build option is -Dio_uring=disabled. sleeper_open_uring() fails,
 * as if the kernel had no io_uring. In a build with this option, all suites test this file. The
 * test `no-io-uring` of tests/packaging makes such a build.
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
