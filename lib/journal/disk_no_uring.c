/* SPDX-License-Identifier: MIT */
/*
 * In place of disk_uring.c in a library built without liburing (-Dio_uring=disabled): opening is
 * refused, as by a kernel without io_uring, and the journal writes by plain calls.
 */
#include <errno.h>

#include "disk_uring.h"

int disk_uring_open(struct disk_uring **ret_uring)
{
	(void)ret_uring;
	return -ENOSYS;
}

int64_t disk_uring_write_sync(struct disk_uring *uring, int file, const void *bytes, size_t count,
                              uint64_t offset, int *ret_synced)
{
	(void)uring;
	(void)file;
	(void)bytes;
	(void)count;
	(void)offset;
	(void)ret_synced;
	return -EOPNOTSUPP;
}

void disk_uring_close(struct disk_uring *uring)
{
	(void)uring;
}
