/* SPDX-License-Identifier: MIT */
/*
 * Locks a file or directory for this process. The lock is free after file_lock_give(), or when the
 * process is dead and fork() has returned in each of its children. Any thread may call, but only
 * one thread at a time for the same lock.
 */
#ifndef JOURNAL_FILE_LOCK_H
#define JOURNAL_FILE_LOCK_H

#include <sys/types.h>

struct file_lock {
	int file; /* -1: no file */
	unsigned place;
	pid_t process; /* the process that took the lock */
};

/*
 * Lock the file `name`, which is created if needed; "." means the directory itself. Returns 0,
 * -EBUSY if another open file holds the lock, or an error.
 */
int file_lock_take(struct file_lock *ret_lock, int dir, const char *name);

/* Release the lock, if there is one. In a forked child the call does nothing. */
void file_lock_give(struct file_lock *lock);

#endif
