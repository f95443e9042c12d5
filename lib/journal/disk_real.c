/* SPDX-License-Identifier: MIT */
/*
 * System calls on a directory. By strace, tests/journal make each fail once, and kill the process
 * after it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef STATX_NLINK /* older C libraries have no statx(), and do not define its struct */
#include <linux/stat.h>
#endif

#include "base/descriptor.h"
#include "journal/disk.h"
#include "journal/file_lock.h"

#define LOCK_NAME "lock"
#define FILE_MODE 0600
/* The largest number of bytes that one read or write moves on Linux. */
#define MOVE_MAX_BYTES 0x7ffff000u

struct disk_real {
	struct disk disk;
	bool counts_links; /* the file system counts the hard links of a file */
	int dir;
	/* Lock of the file LOCK_NAME. Earlier versions of the library take only this lock. */
	struct file_lock lock;
	/* Lock of the directory. This lock lasts even if a user deletes the file LOCK_NAME. */
	struct file_lock dir_lock;
};

static struct disk_real *disk_real_of(struct disk *disk)
{
	return (struct disk_real *)(void *)disk;
}

static int disk_real_result(int result)
{
	return result < 0 ? -errno : result;
}

static int disk_real_lock(struct disk *disk)
{
	struct disk_real *real = disk_real_of(disk);
	int result;

	if (real->dir_lock.file >= 0)
		return 0;
	result = file_lock_take(&real->lock, real->dir, LOCK_NAME);
	if (result == 0)
		result = file_lock_take(&real->dir_lock, real->dir, ".");
	if (result < 0)
		file_lock_give(&real->lock);
	return result;
}

/* Opens a directory, by a path that begins at `dir`. */
static int disk_real_open_dir(int dir, const char *path)
{
	return DESCRIPTOR_ABOVE_STDIO(openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int disk_real_list(struct disk *disk, int (*found)(void *context, const char *name),
                          void *context)
{
	int dir = disk_real_open_dir(disk_real_of(disk)->dir, ".");
	const struct dirent *entry;
	int result = 0;
	DIR *stream;

	if (dir < 0)
		return dir;
	stream = fdopendir(dir);
	if (!stream) {
		result = -errno;
		(void)close(dir);
		return result;
	}
	do {
		errno = 0;
		entry = readdir(stream);
		if (entry)
			result = found(context, entry->d_name);
		else if (errno != 0)
			result = -errno;
	} while (entry && result == 0);
	(void)closedir(stream);
	return result;
}

/*
 * Of names; -1: unknown. Not fstat(), after which the kernel stores the exact time of the next
 * write, and a file system without a journal writes the inode at the next sync.
 */
static int64_t disk_real_links(int file)
{
	struct statx status;
	struct stat older;

	if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, STATX_NLINK, &status) == 0)
		return status.stx_nlink;
	return fstat(file, &older) == 0 ? (int64_t)older.st_nlink : -1;
}

/* Opens a file of the directory. O_PATH: a write fails as if the descriptor were closed. */
static int disk_real_open_at(int dir, const char *name, int flags)
{
	return DESCRIPTOR_BEHIND(openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC),
	                         openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, FILE_MODE));
}

static int disk_real_create(struct disk *disk, const char *name)
{
	struct disk_real *real = disk_real_of(disk);
	int file;

	/* first what has this name, perhaps another user's symbolic link */
	if (unlinkat(real->dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	file = disk_real_open_at(real->dir, name, O_RDWR | O_CREAT | O_EXCL);
	if (file >= 0 && disk_real_links(file) > 0)
		real->counts_links = true;
	return file;
}

static int disk_real_open_file(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes)
{
	/* O_NONBLOCK: a FIFO of this name would block */
	int file = disk_real_open_at(disk_real_of(disk)->dir, name,
	                             (write ? O_RDWR : O_RDONLY) | O_NONBLOCK);
	struct stat status;
	int result = 0;

	if (file < 0)
		return file == -ELOOP ? -EBADMSG : file;
	if (fstat(file, &status) < 0)
		result = -errno;
	else if (!S_ISREG(status.st_mode))
		result = -EBADMSG;
	if (result < 0) {
		(void)close(file);
		return result;
	}
	if (status.st_nlink > 0)
		disk_real_of(disk)->counts_links = true;
	*ret_bytes = (uint64_t)status.st_size;
	return file;
}

static void disk_real_close_file(struct disk *disk, int file)
{
	(void)disk;
	(void)close(file);
}

static int64_t disk_real_read(struct disk *disk, int file, void *bytes, size_t count,
                              uint64_t offset)
{
	int64_t result;

	(void)disk;
	do
		result = pread(file, bytes, count < MOVE_MAX_BYTES ? count : MOVE_MAX_BYTES,
		               (off_t)offset);
	while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : result;
}

/* Of a write beyond RLIMIT_FSIZE; pending, since the writer blocks the signal. */
static void disk_real_swallow_signal(void)
{
	const struct timespec now = { .tv_sec = 0 };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	/* If no SIGXFSZ is pending, sigtimedwait() returns at once. */
	(void)sigtimedwait(&set, NULL, &now);
}

static int64_t disk_real_write(struct disk *disk, int file, const void *bytes, size_t count,
                               uint64_t offset)
{
	int64_t result;

	(void)disk;
	do
		result = pwrite(file, bytes, count < MOVE_MAX_BYTES ? count : MOVE_MAX_BYTES,
		                (off_t)offset);
	while (result < 0 && errno == EINTR);
	if (result >= 0)
		return result;
	result = -errno;
	if (result == -EFBIG)
		disk_real_swallow_signal();
	return result;
}

static int disk_real_sync(struct disk *disk, int file)
{
	(void)disk;
	return disk_real_result(fdatasync(file));
}

static int disk_real_check(struct disk *disk, int file)
{
	int64_t links = disk_real_links(file);

	return links > 0 || (links == 0 && !disk_real_of(disk)->counts_links) ? 0 : -EIO;
}

static int disk_real_truncate(struct disk *disk, int file, uint64_t bytes)
{
	(void)disk;
	return disk_real_result(ftruncate(file, (off_t)bytes));
}

static int disk_real_rename(struct disk *disk, const char *from, const char *to)
{
	struct disk_real *real = disk_real_of(disk);

	return disk_real_result(renameat(real->dir, from, real->dir, to));
}

static int disk_real_unlink(struct disk *disk, const char *name)
{
	return disk_real_result(unlinkat(disk_real_of(disk)->dir, name, 0));
}

static int disk_real_sync_dir(struct disk *disk)
{
	return disk_real_result(fsync(disk_real_of(disk)->dir));
}

static uint32_t disk_real_random(struct disk *disk)
{
	uint32_t number = 0;

	(void)disk;
	/* else seeded with 0: checksums find stale bytes less surely */
	(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return number;
}

static const struct disk_ops disk_real_ops = {
	.lock = disk_real_lock,
	.list = disk_real_list,
	.create = disk_real_create,
	.open = disk_real_open_file,
	.close = disk_real_close_file,
	.read = disk_real_read,
	.write = disk_real_write,
	.sync = disk_real_sync,
	.check = disk_real_check,
	.truncate = disk_real_truncate,
	.rename = disk_real_rename,
	.unlink = disk_real_unlink,
	.sync_dir = disk_real_sync_dir,
	.random = disk_real_random,
};

/* Owns the descriptor `dir`. If it is a negative errno, returns that. */
static int disk_real_new(struct disk **ret_disk, int dir)
{
	struct disk_real *real = dir >= 0 ? calloc(1, sizeof(*real)) : NULL;

	if (dir < 0)
		return dir;
	if (!real) {
		(void)close(dir);
		return -ENOMEM;
	}
	real->disk.ops = &disk_real_ops;
	real->lock.file = real->dir_lock.file = -1;
	real->dir = dir;
	*ret_disk = &real->disk;
	return 0;
}

int disk_real_open(struct disk **ret_disk, const char *dir)
{
	return disk_real_new(ret_disk, disk_real_open_dir(AT_FDCWD, dir));
}

int disk_real_open_again(struct disk **ret_disk, const struct disk *disk)
{
	const struct disk_real *real = (const struct disk_real *)(const void *)disk;

	return disk_real_new(ret_disk, disk_real_open_dir(real->dir, "."));
}

void disk_real_close(struct disk *disk)
{
	struct disk_real *real;

	if (!disk)
		return;
	real = disk_real_of(disk);
	file_lock_give(&real->dir_lock);
	file_lock_give(&real->lock);
	(void)close(real->dir);
	free(real);
}
