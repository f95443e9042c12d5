/* SPDX-License-Identifier: MIT */
/*
 * A mutex, for journal and relay only: their callers wait for a disk or a server anyway. A thread
 * gives the lock back before it blocks on either. Only open and close may wait for the disk with
 * the lock held, since no other thread then uses the journal.
 */
#ifndef TIMERHUB_LOCK_H
#define TIMERHUB_LOCK_H

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
