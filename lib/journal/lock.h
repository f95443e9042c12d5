/* SPDX-License-Identifier: MIT */
/*
 * Wraps a pthread mutex. The timer library uses no mutex. The journal may use a mutex, because a
 * thread that changes a journal waits for the disk anyway. A thread releases the mutex before each
 * system call that can block on the disk. Only timerhub_journal_open() and timerhub_journal_close()
 * may wait for the disk with the mutex held. While one of these two functions runs, no other thread
 * uses the journal.
 */
#ifndef JOURNAL_LOCK_H
#define JOURNAL_LOCK_H

#include <pthread.h>

struct lock {
	pthread_mutex_t mutex;
};

static inline void lock_init(struct lock *lock)
{
	(void)pthread_mutex_init(&lock->mutex, NULL); /* without attributes, the call cannot fail */
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
