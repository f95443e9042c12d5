/* SPDX-License-Identifier: MIT */
/*
 * Handles the three files of an SQLite database, the database, the -wal and the -shm, without
 * SQLite: whether they are still there, and who has locked them. SQLite keeps POSIX locks on the
 * database and the -shm, and the kernel drops all locks that a process has on a file as soon as the
 * process closes any descriptor of it. So this file only calls stat(2) for the database, and never
 * closes a -shm that is in use. So that no -shm gets the descriptor 0, 1 or 2, known_shm() fills
 * these first: a dup(2) and a close(2) later would drop SQLite's locks. SQLite has no locks on the
 * -wal.
 *
 * SQLite's walformat.html describes the bytes of the -shm: the writer locks byte 120, and readers
 * lock bytes 123 to 127.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/descriptor.h"
#include "store/store.h"

#define WRITE_LOCK_BYTE 120
#define READ_LOCK_BYTE 123
#define READ_LOCKS 5
#define TURN_BYTE (INT64_C(1) << 50) /* far beyond the end of the -wal */
#define NEXT_TURN_BYTE (TURN_BYTE + 1)
/*
 * The end of a task writes three to four pages, and 1,000 ends must find room on a full disk,
 * behind the part of the WAL that is in use: up to 6 MiB, or more while a reader keeps the WAL from
 * beginning anew. The room is looked at again after at most 2 MiB.
 */
#define ENDS_BYTES (UINT64_C(14) << 20)
#define USED_MAX_BYTES (UINT64_C(6) << 20)
#define STEP_BYTES (UINT64_C(2) << 20)
#define LOW_WATER_BYTES (UINT64_C(16) << 20)
#define NAP_MIN_NS 20000
#define NAP_MAX_NS 500000

/* ---- the -shm ---- */

struct known_shm {
	struct known_shm *next;
	struct stat found;
	int fd;
};

static struct lock known_lock = { PTHREAD_MUTEX_INITIALIZER };
static struct known_shm *known_first;

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/*
 * Returns a descriptor of the -shm `name`, or a negative errno. It stays open until the file is
 * removed or the process ends.
 */
static int known_shm(const char *name, const struct stat *found)
{
	struct known_shm **place = &known_first, *known;
	int fd = -ENOMEM;
	struct stat now;

	lock_take(&known_lock);
	while ((known = *place) && !is_same_file(&known->found, found)) {
		if (fstat(known->fd, &now) < 0 || now.st_nlink > 0) {
			place = &known->next;
			continue;
		}
		/* this file was removed, so no connection has locks on it any more */
		*place = known->next;
		(void)close(known->fd);
		free(known);
	}
	if (known) {
		fd = known->fd;
	} else if ((known = malloc(sizeof(*known)))) {
		/*
		 * Do not let this file get the descriptor 0, 1 or 2, which the program may have
		 * closed: its output would then go into the file.
		 */
		fd = DESCRIPTOR_BEHIND(open("/dev/null", O_RDONLY | O_CLOEXEC),
		                       open(name, O_RDWR | O_CLOEXEC));
		*known = (struct known_shm){ .next = known_first, .found = *found, .fd = fd };
		if (fd >= 0)
			known_first = known;
		else
			free(known);
	}
	lock_give(&known_lock);
	return fd;
}

/* ---- identity ---- */

int files_open(struct files *files, const char *path)
{
	static const char *const suffixes[FILES] = { "", "-wal", "-shm" };

	for (int i = 0; i < FILES; i++) {
		if (asprintf(&files->names[i], "%s%s", path, suffixes[i]) < 0) {
			files->names[i] = NULL;
			return -ENOMEM;
		}
		if (stat(files->names[i], &files->found[i]) < 0)
			return -errno;
	}
	files->wal_fd = DESCRIPTOR_ABOVE_STDIO(open(files->names[FILE_WAL], O_RDWR | O_CLOEXEC));
	if (files->wal_fd < 0)
		return files->wal_fd;
	files->shm_fd = known_shm(files->names[FILE_SHM], &files->found[FILE_SHM]);
	return files->shm_fd < 0 ? files->shm_fd : 0;
}

void files_close(struct files *files)
{
	for (int i = 0; i < FILES; i++)
		free(files->names[i]);
	if (files->wal_fd >= 0)
		(void)close(files->wal_fd);
}

/*
 * Finds out which file has a name. It does not ask for the file's times, because from Linux 6.13 on
 * the next write would have to change them, and the sync after it would write the inode too.
 */
static int find_file(const char *name, struct stat *ret)
{
#ifdef STATX_INO /* musl before 1.2.5 has no statx() */
	struct statx found;

	if (statx(AT_FDCWD, name, 0, STATX_INO, &found) == 0) {
		ret->st_ino = found.stx_ino;
		ret->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
		return 0;
	}
#endif
	return stat(name, ret); /* also if a seccomp filter refuses statx() */
}

bool files_are_there(const struct files *files)
{
	struct stat now;

	for (int i = 0; i < FILES; i++)
		if (find_file(files->names[i], &now) < 0) {
			/* other errors, such as EACCES, do not prove that the file is gone */
			if (errno == ENOENT || errno == ENOTDIR)
				return false;
		} else if (!is_same_file(&now, &files->found[i])) {
			return false;
		}
	return true;
}

bool files_are_of(const struct files *files, const char *database)
{
	struct stat now;

	return database && *database && stat(database, &now) == 0 &&
	       is_same_file(&now, &files->found[FILE_DATABASE]);
}

/* ---- locks ---- */

void files_nap(uint64_t ns)
{
	atomic_u32 nobody = 0;

	futex_wait(&nobody, 0, ns);
}

static bool byte_lock(int fd, int64_t byte, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	/* any other error means that the file system cannot lock, so go on without the lock */
	return fcntl(fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

/*
 * Returns the pid of a process that has locked one of these bytes, 0 if nobody has, or -1 if the
 * lock has no pid.
 */
static int bytes_holder(int fd, int64_t first, int64_t count)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count
	};

	/* unlike F_GETLK, this call also reports locks of the calling process */
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid != 0 ? lock.l_pid : -1;
}

bool files_is_writing(const struct files *files)
{
	return bytes_holder(files->shm_fd, WRITE_LOCK_BYTE, 1) != 0;
}

int files_reader(const struct files *files)
{
	int pid = bytes_holder(files->shm_fd, READ_LOCK_BYTE, READ_LOCKS);

	return pid > 0 ? pid : 0;
}

static bool byte_lock_until(int fd, int64_t byte, uint64_t deadline_ns, uint64_t nap_max_ns)
{
	for (uint64_t nap_ns = NAP_MIN_NS; !byte_lock(fd, byte, F_WRLCK);) {
		if (clock_monotonic_ns() >= deadline_ns)
			return false;
		files_nap(nap_ns);
		nap_ns = u64_min(nap_ns * 2, nap_max_ns);
	}
	return true;
}

/* Returns true if another writer has locked TURN_BYTE or NEXT_TURN_BYTE, two bytes of the -wal. */
bool files_have_queue(const struct files *files)
{
	return bytes_holder(files->wal_fd, TURN_BYTE, 2) != 0;
}

bool files_take_turn(const struct files *files, uint64_t deadline_ns)
{
	bool takes = byte_lock_until(files->wal_fd, NEXT_TURN_BYTE, deadline_ns, NAP_MAX_NS);

	if (takes) {
		takes = byte_lock_until(files->wal_fd, TURN_BYTE, deadline_ns, NAP_MIN_NS);
		(void)byte_lock(files->wal_fd, NEXT_TURN_BYTE, F_UNLCK);
	}
	return takes;
}

void files_give_turn(const struct files *files)
{
	(void)byte_lock(files->wal_fd, TURN_BYTE, F_UNLCK);
}

/* ---- the disk ---- */

uint64_t files_wal_bytes(const struct files *files)
{
	struct stat now;

	return fstat(files->wal_fd, &now) == 0 ? (uint64_t)now.st_size : 0;
}

/* How long the WAL must be, if `used_bytes` of it are in use and may become `more_bytes` more. */
static uint64_t room_bytes(uint64_t used_bytes, uint64_t more_bytes)
{
	return (used_bytes <= USED_MAX_BYTES ? USED_MAX_BYTES : used_bytes + more_bytes) +
	       ENDS_BYTES;
}

bool files_have_room(const struct files *files, uint64_t used_bytes)
{
	return files_wal_bytes(files) >= room_bytes(used_bytes, STEP_BYTES);
}

static void file_lengthen(int fd, off_t bytes)
{
	static const char zeros[1 << 15];
	struct stat now;
	ssize_t written = fstat(fd, &now) < 0 ? -1 : 1;
	struct rlimit limit;

	/* a write beyond this limit kills most programs (SIGXFSZ) */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	    (uint64_t)bytes + sizeof(zeros) > limit.rlim_cur)
		return;
	/* Append zeros up to `bytes`. If a write fails, a later call appends the rest. */
	for (off_t at = now.st_size; at < bytes && written > 0; at += written)
		written = pwrite(fd, zeros, sizeof(zeros), at);
}

void files_make_room(const struct files *files, uint32_t frame_bytes, uint64_t used_bytes)
{
	off_t bytes = (off_t)room_bytes(used_bytes, 2 * STEP_BYTES);

	file_lengthen(files->wal_fd, bytes);
	/* SQLite needs 32 KiB of the -shm for each 4,096 frames of the WAL */
	file_lengthen(files->shm_fd, (bytes / frame_bytes / 4096 + 1) << 15);
}

bool files_disk_is_low(const struct files *files, uint64_t wal_bytes)
{
	struct statvfs disk;
	uint64_t low = u64_max(wal_bytes * 2, LOW_WATER_BYTES);

	return fstatvfs(files->wal_fd, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < low;
}
