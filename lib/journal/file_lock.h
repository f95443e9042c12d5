/* SPDX-License-Identifier: MIT */
/*
 * Locks a file or directory for this process. The lock is free after file_lock_give(). If the
 * process dies, the lock is free when fork() has returned in each child of the process. Any thread
 * may call the functions, but only one thread at a time may use a lock.
 */
#ifndef JOURNAL_FILE_LOCK_H
#define JOURNAL_FILE_LOCK_H

#include <sys/types.h>

struct file_lock {
	int file; /* descriptor of the locked file, or -1 */
	unsigned place;
	pid_t process; /* the process that took the lock */
};

/*
 * Lock the file `name` in the directory `dir`, and create the file if needed. The name "." means
 * the directory itself. Returns 0, -EBUSY if the file is locked already through another descriptor,
 * or an error.
 */
int file_lock_take(struct file_lock *ret_lock, int dir, const char *name);

/*
 * Release the lock, if this process holds the lock. In a forked child, the function only forgets
 * the lock.
 */
void file_lock_give(struct file_lock *lock);

#endif
