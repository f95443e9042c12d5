/* SPDX-License-Identifier: MIT */
/*
 * See file_lock.h. The lock belongs to the open file: a second open in this process finds it taken.
 * A child inherits the lock, and the lock lasts as long as any process has the file. So a child
 * closes the file before fork() returns there, and hold_give() unlocks it first. A child of vfork
 * or posix_spawn ends in exec, which closes the file. A child of the bare system call keeps it. No
 * mutex is used, because a signal handler may fork.
 *
 * Invariant: `hold_places` has every file that is locked, except those that a hold_take() in
 * progress will unlock again. Tested by tests/journal/test_file_lock.c.
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

#include "journal/lock.h"

#define HOLDS_MAX 256
#define FILE_MODE 0600
/* Not for ever: another library's handler may keep a fork waiting. */
#define TRIES_MAX 1000
#define TRY_AGAIN_MS 1

static atomic_int hold_places[HOLDS_MAX]; /* a file and 1; 0: free */
static atomic_uint hold_forks_begun;
static atomic_uint hold_forks_ended;

static void hold_fork_begins(void)
{
	atomic_fetch_add(&hold_forks_begun, 1);
}

static void hold_fork_ended_in_parent(void)
{
	atomic_fetch_add(&hold_forks_ended, 1);
}

static void hold_fork_ended_in_child(void)
{
	for (unsigned i = 0; i < HOLDS_MAX; i++) {
		int file = atomic_exchange(&hold_places[i], 0) - 1;

		if (file >= 0)
			(void)close(file);
	}
	/* Those of other threads do not go on here. */
	atomic_store(&hold_forks_ended, atomic_load(&hold_forks_begun));
}

static int hold_atfork_result;

static void hold_watch_forks(void)
{
	hold_atfork_result = -pthread_atfork(hold_fork_begins, hold_fork_ended_in_parent,
	                                     hold_fork_ended_in_child);
}

static int hold_open_locked(int dir, const char *name)
{
	bool itself = strcmp(name, ".") == 0;
	int flags = itself ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
	int file = openat(dir, name, flags | O_CLOEXEC, FILE_MODE);
	int result;

	if (file < 0)
		return -errno;
	if (flock(file, LOCK_EX | LOCK_NB) == 0)
		return file;
	/* Network file systems lock files only: there the file must do. */
	if (itself && errno != EWOULDBLOCK)
		return file;
	result = errno == EWOULDBLOCK ? -EBUSY : -errno;
	(void)close(file);
	return result;
}

static int hold_try_take(struct hold *hold, int dir, const char *name)
{
	int file = hold_open_locked(dir, name);

	if (file < 0)
		return file;
	for (unsigned i = 0; i < HOLDS_MAX; i++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&hold_places[i], &none, file + 1)) {
			*hold = (struct hold){ .file = file, .place = i, .process = getpid() };
			return 0;
		}
	}
	(void)close(file);
	return -EMFILE;
}

/*
 * A child that was forked between the opening and the noting has the file, and does not know of it:
 * then it is unlocked, for that child too, and taken once more. Nothing was forked in between if as
 * many forks have begun now as had ended before.
 *
 *	here                       in another thread
 *	hold_places: the file        hold_forks_begun: one more
 *	look at hold_forks_begun     clone, with a copy of hold_places
 *
 * Sequentially consistent: either we see that fork, or its child sees the file.
 */
int hold_take(struct hold *ret_hold, int dir, const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, hold_watch_forks);
	if (hold_atfork_result < 0)
		return hold_atfork_result;
	for (unsigned tries = 1;; tries++) {
		unsigned ended = atomic_load(&hold_forks_ended);
		struct hold hold;
		int result = hold_try_take(&hold, dir, name);

		if (result < 0)
			return result;
		if (ended == atomic_load(&hold_forks_begun) || tries == TRIES_MAX) {
			*ret_hold = hold;
			return 0;
		}
		hold_give(&hold);
		(void)poll(NULL, 0, TRY_AGAIN_MS);
	}
}

void hold_give(struct hold *hold)
{
	/* In a child the file is closed, and its number may be another's. */
	if (hold->file >= 0 && hold->process == getpid()) {
		(void)flock(hold->file, LOCK_UN);
		atomic_store(&hold_places[hold->place], 0);
		(void)close(hold->file);
	}
	hold->file = -1;
}
