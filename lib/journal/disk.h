/* SPDX-License-Identifier: MIT */
/*
 * The file system under a journal's directory: system calls (disk_real.c), or the tests' disk that
 * loses and tears. One thread at a time: after open, the leader. A file is a number from 0.
 */
#ifndef JOURNAL_DISK_H
#define JOURNAL_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_NAME_MAX 32 /* size of the longest file name, with its NUL */

struct disk;

struct disk_ops {
	/*
	 * 0, also if this disk has it already; -EBUSY: another process, or another open journal of
	 * this one.
	 */
	int (*lock)(struct disk *disk);
	/* For every name, until one returns another value than 0, which is returned. */
	int (*list)(struct disk *disk, int (*found)(void *context, const char *name),
	            void *context);
	/* Create an empty file, which replaces a file of the same name. */
	int (*create)(struct disk *disk, const char *name);
	/* With its size; -EBADMSG: not a regular file. */
	int (*open)(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes);
	void (*close)(struct disk *disk, int file);
	/* pread(2) and pwrite(2), with -errno; may move fewer bytes. */
	int64_t (*read)(struct disk *disk, int file, void *bytes, size_t count, uint64_t offset);
	int64_t (*write)(struct disk *disk, int file, const void *bytes, size_t count,
	                 uint64_t offset);
	int (*sync)(struct disk *disk, int file);
	/* 0, or -EIO if another program has removed its name, so that it is lost at close. */
	int (*check)(struct disk *disk, int file);
	int (*truncate)(struct disk *disk, int file, uint64_t bytes);
	int (*rename)(struct disk *disk, const char *from, const char *to);
	int (*unlink)(struct disk *disk, const char *name);
	int (*sync_dir)(struct disk *disk);
	/* Returns a number that is hard to guess, from which checksums and hashes are seeded. */
	uint32_t (*random)(struct disk *disk);
};

struct disk {
	const struct disk_ops *ops;
};

/* Close `*file`, unless it is -1. It is forgotten first, for a child forked in between. */
static inline void disk_close(struct disk *disk, int *file)
{
	int closed = *file;

	*file = -1;
	if (closed >= 0)
		disk->ops->close(disk, closed);
}

/* Make a disk of the directory `dir`. The caller frees the disk with disk_real_close(). */
int disk_real_open(struct disk **ret_disk, const char *dir);

/* Open the directory of `disk` once more, for reading, even if the directory was renamed. */
int disk_real_open_again(struct disk **ret_disk, const struct disk *disk);

void disk_real_close(struct disk *disk);

#endif
