/* SPDX-License-Identifier: MIT */
/*
 * A lock of a file or directory for this process, until file_lock_give(), or its death and fork()'s
 * return in its children. Any thread, but one at a time for each lock.
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
 * Creates `name` in `dir` if needed; ".": the directory itself. 0, -EBUSY (through another
 * descriptor), or an error.
 */
int file_lock_take(struct file_lock *ret_lock, int dir, const char *name);

/* A forked child only forgets it. */
void file_lock_give(struct file_lock *lock);

#endif
