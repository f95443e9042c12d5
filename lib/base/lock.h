/* SPDX-License-Identifier: MIT */
/*
 * A mutex, for store and relay only, whose callers wait for a disk or a server anyway: it is given
 * back before that, but by the store for the lock of its syncs, of which one runs at a time.
 */
#ifndef TIMERHUB_LOCK_H
#define TIMERHUB_LOCK_H

#include <pthread.h>

struct lock {
	pthread_mutex_t mutex;
};

static inline void lock_init(struct lock *lock)
{
	(void)pthread_mutex_init(&lock->mutex, NULL); /* can't fail */
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
