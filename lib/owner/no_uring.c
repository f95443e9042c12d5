/* SPDX-License-Identifier: MIT */
/*
 * Takes the place of sleeper_uring.c in a library that is built with -Dio_uring=disabled, and
 * behaves as if the kernel had no io_uring. The owner then sleeps in ppoll(2). The test
 * `no-io-uring` of tests/packaging makes such a build.
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
