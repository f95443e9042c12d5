/* SPDX-License-Identifier: MIT */
/*
 * flock(2): of the open file, so a second open in this process finds it locked, and a forked child
 * inherits it. So a child closes the file before fork() returns in it, and file_lock_give() unlocks
 * before the close. vfork and posix_spawn end in exec, which closes; a bare clone() keeps it. No
 * mutex, since a signal handler may fork(). Invariant: `file_lock_places` lists every locked file
 * but those that a take in progress will unlock again. Tested by
 * tests/journal/test_lock_after_fork.c.
 */
#define _GNU_SOURCE
#include "journal/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/lock.h"

#define HOLDS_MAX 256
#define FILE_MODE 0600
/* attempts: another library's fork handler may delay a fork for any time */
#define TRIES_MAX 1000
#define TRY_AGAIN_MS 1

/* This process's: descriptor plus 1; 0: free. */
static atomic_int file_lock_places[HOLDS_MAX];
static atomic_uint file_lock_forks_begun;
static atomic_uint file_lock_forks_ended;

static void file_lock_fork_begins(void)
{
	atomic_fetch_add(&file_lock_forks_begun, 1);
}

static void file_lock_fork_ended_in_parent(void)
{
	atomic_fetch_add(&file_lock_forks_ended, 1);
}

static void file_lock_fork_ended_in_child(void)
{
	for (unsigned i = 0; i < HOLDS_MAX; i++) {
		int file = atomic_exchange(&file_lock_places[i], 0) - 1;

		if (file >= 0)
			(void)close(file);
	}
	/* the child has one thread, so no fork is in progress */
	atomic_store(&file_lock_forks_ended, atomic_load(&file_lock_forks_begun));
}

static int file_lock_atfork_result;

static void file_lock_watch_forks(void)
{
	file_lock_atfork_result =
		-pthread_atfork(file_lock_fork_begins, file_lock_fork_ended_in_parent,
	                        file_lock_fork_ended_in_child);
}

static int file_lock_open_locked(int dir, const char *name)
{
	bool itself = strcmp(name, ".") == 0;
	int flags = itself ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
	int file = DESCRIPTOR_ABOVE_STDIO(openat(dir, name, flags | O_CLOEXEC, FILE_MODE));
	int result;

	if (file < 0)
		return file;
	if (flock(file, LOCK_EX | LOCK_NB) == 0)
		return file;
	/*
	 * a network file system can't lock a directory: then only the file "lock" excludes others
	 */
	if (itself && errno != EWOULDBLOCK)
		return file;
	result = errno == EWOULDBLOCK ? -EBUSY : -errno;
	(void)close(file);
	return result;
}

static int file_lock_try_take(struct file_lock *lock, int dir, const char *name)
{
	int file = file_lock_open_locked(dir, name);

	if (file < 0)
		return file;
	for (unsigned i = 0; i < HOLDS_MAX; i++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&file_lock_places[i], &none, file + 1)) {
			*lock = (struct file_lock){ .file = file, .place = i, .process = getpid() };
			return 0;
		}
	}
	(void)close(file);
	return -EMFILE;
}

/*
 * Another thread may fork after file_lock_take() opens the file and before file_lock_take() stores
 * the file in `file_lock_places`. The child's copy of `file_lock_places` lacks the file, so the
 * child does not close it. If such a fork may have happened, file_lock_take() unlocks and closes
 * the file, and begins again. The unlock also ends the child's share of the lock. Before
 * file_lock_take() opens the file, it reads file_lock_forks_ended. After file_lock_take() has
 * stored the file in `file_lock_places`, it reads file_lock_forks_begun. If the two values are
 * equal, no thread has forked between the two reads.
 *
 *	this thread                          a thread that forks
 *	store the file in file_lock_places   increment file_lock_forks_begun
 *	load file_lock_forks_begun           clone, with a copy of file_lock_places
 *
 * All accesses of file_lock_places and file_lock_forks_begun are sequentially consistent. If
 * file_lock_take() reads file_lock_forks_begun before the increment, it has stored the file before
 * the clone. The child's copy of `file_lock_places` then has the file.
 */
int file_lock_take(struct file_lock *ret_lock, int dir, const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, file_lock_watch_forks);
	if (file_lock_atfork_result < 0)
		return file_lock_atfork_result;
	for (unsigned tries = 1;; tries++) {
		unsigned ended = atomic_load(&file_lock_forks_ended);
		struct file_lock lock;
		int result = file_lock_try_take(&lock, dir, name);

		if (result < 0)
			return result;
		if (ended == atomic_load(&file_lock_forks_begun) || tries == TRIES_MAX) {
			*ret_lock = lock;
			return 0;
		}
		file_lock_give(&lock);
		(void)poll(NULL, 0, TRY_AGAIN_MS);
	}
}

void file_lock_give(struct file_lock *lock)
{
	/* A forked child has closed the file already, and may have reused the descriptor. */
	if (lock->file >= 0 && lock->process == getpid()) {
		(void)flock(lock->file, LOCK_UN);
		atomic_store(&file_lock_places[lock->place], 0);
		(void)close(lock->file);
	}
	lock->file = -1;
}
