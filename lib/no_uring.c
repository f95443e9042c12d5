/* SPDX-License-Identifier: MIT */
/*
 * In place of sleeper_uring.c and announcer.c in a library built without liburing
 * (-Dio_uring=disabled): opening either is refused, as by a kernel without io_uring. Tested by the
 * suites in such a build, and by the test `without io_uring` of tests/packaging.
 */
#include <errno.h>
#include <stddef.h>

#include "announcer.h"
#include "check.h"
#include "sleeper.h"

int sleeper_open_uring(struct sleeper *sleeper, int bell, int alarm)
{
	(void)sleeper;
	(void)bell;
	(void)alarm;
	return -ENOSYS;
}

int announcer_open(struct announcer **ret_announcer, int ring_fd, uint64_t user_data)
{
	(void)ret_announcer;
	(void)ring_fd;
	(void)user_data;
	return -EOPNOTSUPP;
}

void announcer_close(struct announcer *announcer)
{
	check(announcer == NULL);
}

void announcer_post(struct announcer *announcer, unsigned count)
{
	(void)announcer;
	(void)count;
	check(false); /* none was ever opened */
}
