/* SPDX-License-Identifier: MIT */
/* A write and the sync of it, linked in a ring of io_uring. One thread at a time. */
#ifndef JOURNAL_DISK_URING_H
#define JOURNAL_DISK_URING_H

#include <stddef.h>
#include <stdint.h>

struct disk_uring;

/* 0, or the errno with which the kernel refused. */
int disk_uring_open(struct disk_uring **ret_uring);

/* As write_sync of disk.h; -EOPNOTSUPP: the ring is of no use any more, and nothing was done. */
int64_t disk_uring_write_sync(struct disk_uring *uring, int file, const void *bytes, size_t count,
                              uint64_t offset, int *ret_synced);

/* NULL is fine. */
void disk_uring_close(struct disk_uring *uring);

#endif
