/* SPDX-License-Identifier: MIT */
/*
 * See disk_uring.h. Two requests, linked: the kernel starts the sync when the write is complete,
 * and cancels it if the write fails or falls short, so that what was not written is never said to
 * be stable. Tested through every durable call of tests/journal, which run with and without a ring.
 */
#include "disk_uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

#define ENTRIES 4
enum { TAG_WRITE = 1, TAG_SYNC = 2 };

struct disk_uring {
	struct io_uring ring;
};

int disk_uring_open(struct disk_uring **ret_uring)
{
	struct disk_uring *uring = calloc(1, sizeof(*uring));
	int result;

	if (!uring)
		return -ENOMEM;
	result = io_uring_queue_init(ENTRIES, &uring->ring, 0);
	/*
	 * The workers must be threads of this process (5.12): so they have its files, and when it
	 * is killed the lock is not free before the last of them has stopped writing.
	 */
	if (result == 0 && (uring->ring.features & IORING_FEAT_NATIVE_WORKERS) == 0) {
		io_uring_queue_exit(&uring->ring);
		result = -ENOSYS;
	}
	if (result < 0) {
		free(uring);
		return result;
	}
	*ret_uring = uring;
	return 0;
}

/* 0; -EOPNOTSUPP: nothing was submitted; -EIO: half of it was. */
static int uring_submit(struct disk_uring *uring, int file, const void *bytes, size_t count,
                        uint64_t offset)
{
	struct io_uring_sqe *write = io_uring_get_sqe(&uring->ring);
	struct io_uring_sqe *sync = io_uring_get_sqe(&uring->ring);
	int submitted;

	if (!write || !sync)
		return -EOPNOTSUPP;
	io_uring_prep_write(write, file, bytes, (unsigned)count, offset);
	io_uring_sqe_set_flags(write, IOSQE_IO_LINK);
	io_uring_sqe_set_data64(write, TAG_WRITE);
	io_uring_prep_fsync(sync, file, IORING_FSYNC_DATASYNC);
	io_uring_sqe_set_data64(sync, TAG_SYNC);
	do
		submitted = io_uring_submit_and_wait(&uring->ring, 2);
	while (submitted == -EINTR);
	if (submitted == 2)
		return 0;
	return submitted > 0 ? -EIO : -EOPNOTSUPP;
}

int64_t disk_uring_write_sync(struct disk_uring *uring, int file, const void *bytes, size_t count,
                              uint64_t offset, int *ret_synced)
{
	int64_t written = -EIO;
	int result = uring_submit(uring, file, bytes, count, offset);

	if (result == -EOPNOTSUPP)
		return result;
	*ret_synced = -EIO;
	if (result < 0)
		return (int64_t)count;
	for (unsigned left = 2; left > 0;) {
		struct io_uring_cqe *cqe;

		result = io_uring_wait_cqe(&uring->ring, &cqe);
		if (result == -EINTR || result == -EAGAIN)
			continue;
		/* For all we know the write goes on: as bad as a failed sync. */
		if (result < 0)
			return (int64_t)count;
		if (io_uring_cqe_get_data64(cqe) == TAG_WRITE)
			written = cqe->res;
		else
			*ret_synced = cqe->res;
		io_uring_cqe_seen(&uring->ring, cqe);
		left--;
	}
	return written;
}

void disk_uring_close(struct disk_uring *uring)
{
	if (!uring)
		return;
	io_uring_queue_exit(&uring->ring);
	free(uring);
}
