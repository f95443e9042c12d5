/* SPDX-License-Identifier: MIT */
/*
 * A file that this process has locked. The lock is free after file_lock_give(), or when the process
 * is dead and fork() has returned in each of its children. Any thread may call, one at a time for
 * each lock.
 */
#ifndef JOURNAL_FILE_LOCK_H
#define JOURNAL_FILE_LOCK_H

#include <sys/types.h>

struct file_lock {
	int file; /* -1: none */
	unsigned place;
	pid_t process; /* that took it */
};

/*
 * Lock the file of that name, made if it is not there, or "." for the directory itself. 0; -EBUSY:
 * another open file holds the lock; or an error.
 */
int file_lock_take(struct file_lock *ret_lock, int dir, const char *name);

/* Fine if there is none, and in a forked child, where it does nothing. */
void file_lock_give(struct file_lock *lock);

#endif
