/* SPDX-License-Identifier: MIT */
/*
 * A mutex, which only the store and the relay use. Their callers wait for a disk or a server
 * anyway, so a lock costs them little, but nobody may hold it during such a wait. The only
 * exceptions are two locks of the store: one sync of its WAL runs at a time, and one thread at a
 * time uses the connection that checkpoints.
 */
#ifndef TIMERHUB_LOCK_H
#define TIMERHUB_LOCK_H

#include <pthread.h>

struct lock {
	pthread_mutex_t mutex;
};

static inline void lock_init(struct lock *lock)
{
	(void)pthread_mutex_init(&lock->mutex, NULL); /* cannot fail, as it has no attributes */
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
