/* SPDX-License-Identifier: MIT */
/*
 * A file that this process has locked. It is free again when it is given back, or the process is
 * dead and fork() has returned in each child, however long those live. Any thread; a hold by one at
 * a time.
 */
#ifndef JOURNAL_HOLD_H
#define JOURNAL_HOLD_H

#include <sys/types.h>

struct hold {
	int file; /* -1: none */
	unsigned place;
	pid_t process; /* that took it */
};

/*
 * Lock the file of that name, made if it is not there, or "." for the directory itself. 0; -EBUSY:
 * another open file holds the lock; or an error.
 */
int hold_take(struct hold *ret_hold, int dir, const char *name);

/* Fine if there is none, and in a forked child, where it does nothing. */
void hold_give(struct hold *hold);

#endif
