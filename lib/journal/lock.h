/* SPDX-License-Identifier: MIT */
/*
 * The journal's mutex, at home here. The timer service has none; the journal may: a thread that
 * changes it waits for a disk anyway. No thread holds it across a system call that can block on the
 * disk, except in open and close, where no other thread uses the journal.
 */
#ifndef JOURNAL_LOCK_H
#define JOURNAL_LOCK_H

#include <pthread.h>

struct lock {
	pthread_mutex_t mutex;
};

static inline void lock_init(struct lock *lock)
{
	(void)pthread_mutex_init(&lock->mutex, NULL); /* without attributes it cannot fail here */
}

static inline void lock_fini(struct lock *lock)
{
	(void)pthread_mutex_destroy(&lock->mutex);
}

static inline void lock_take(struct lock *lock)
{
	(void)pthread_mutex_lock(&lock->mutex);
}

static inline void lock_give(struct lock *lock)
{
	(void)pthread_mutex_unlock(&lock->mutex);
}

#endif
