/* SPDX-License-Identifier: MIT */
/*
 * The one directory that a journal lives in, as a table of calls: the real one (disk_real.c), or a
 * simulated one in tests that loses and tears what was not synced. One thread at a time, the
 * journal's leader after open. Files are named by small numbers, never negative.
 */
#ifndef JOURNAL_DISK_H
#define JOURNAL_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_NAME_MAX 32 /* with its final 0 */

struct disk;

struct disk_ops {
	/* 0, now or before; -EBUSY: another process, or another open of this one, has it. */
	int (*lock)(struct disk *disk);
	/* Call `found` for every name; stops at the first that returns not 0, and returns that. */
	int (*list)(struct disk *disk, int (*found)(void *context, const char *name),
	            void *context);
	/* A new, empty file in place of what was there. */
	int (*create)(struct disk *disk, const char *name);
	/* `ret_bytes`: its size. -EBADMSG: it is no regular file. */
	int (*open)(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes);
	void (*close)(struct disk *disk, int file);
	/* As pread(2) and pwrite(2), with -errno: may do less than asked for, and then not 0. */
	int64_t (*read)(struct disk *disk, int file, void *bytes, size_t count, uint64_t offset);
	int64_t (*write)(struct disk *disk, int file, const void *bytes, size_t count,
	                 uint64_t offset);
	int (*sync)(struct disk *disk, int file);
	/* 0; -EIO: the file has no name any more, so what is in it is lost when it is closed. */
	int (*check)(struct disk *disk, int file);
	int (*truncate)(struct disk *disk, int file, uint64_t bytes);
	int (*rename)(struct disk *disk, const char *from, const char *to);
	int (*unlink)(struct disk *disk, const char *name);
	int (*sync_dir)(struct disk *disk);
	/* A number hard to guess, to seed checksums with. */
	uint32_t (*random)(struct disk *disk);
};

struct disk {
	const struct disk_ops *ops;
};

/* The directory `dir`. Free with disk_real_close(). */
int disk_real_open(struct disk **ret_disk, const char *dir);

/* The same directory once more, for looking, whatever its name is now. */
int disk_real_open_again(struct disk **ret_disk, const struct disk *disk);

void disk_real_close(struct disk *disk);

#endif
