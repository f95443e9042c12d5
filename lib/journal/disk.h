/* SPDX-License-Identifier: MIT */
/*
 * Abstracts the file system under a journal's directory, as a table of calls. The implementation in
 * disk_real.c makes system calls. Tests use a simulated disk that loses and tears unsynced writes.
 * Only one thread at a time uses a disk: after open, the leader. The calls identify an open file by
 * a number of at least 0.
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
	 * Lock the directory. Returns 0, even if this struct disk has the lock already. Returns
	 * -EBUSY if another process, or another open journal of this process, has the lock.
	 */
	int (*lock)(struct disk *disk);
	/*
	 * Call `found` for every name in the directory. If a call of `found` returns a value other
	 * than 0, stop and return that value.
	 */
	int (*list)(struct disk *disk, int (*found)(void *context, const char *name),
	            void *context);
	/* Create an empty file, which replaces a file of the same name. */
	int (*create)(struct disk *disk, const char *name);
	/*
	 * Open a file and write its size to `ret_bytes`. Returns -EBADMSG if the file is not a
	 * regular file.
	 */
	int (*open)(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes);
	void (*close)(struct disk *disk, int file);
	/*
	 * The calls `read` and `write` do the work of pread(2) and pwrite(2), but return -errno. A
	 * `read` or `write` may move fewer bytes than asked.
	 */
	int64_t (*read)(struct disk *disk, int file, void *bytes, size_t count, uint64_t offset);
	int64_t (*write)(struct disk *disk, int file, const void *bytes, size_t count,
	                 uint64_t offset);
	int (*sync)(struct disk *disk, int file);
	/*
	 * Returns 0, or -EIO if another program has removed the file's name, so that its contents
	 * are lost at close.
	 */
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

/* Make a disk of the directory `dir`. The caller frees the disk with disk_real_close(). */
int disk_real_open(struct disk **ret_disk, const char *dir);

/* Open the directory of `disk` once more, for reading, even if the directory was renamed. */
int disk_real_open_again(struct disk **ret_disk, const struct disk *disk);

void disk_real_close(struct disk *disk);

#endif
