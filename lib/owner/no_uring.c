/* SPDX-License-Identifier: MIT */
/*
 * In place of sleeper_uring.c with -Dio_uring=disabled: as if the kernel had no io_uring. The test
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
