/* SPDX-License-Identifier: MIT */
/*
 * No public call is a cancellation point of pthread_cancel(3), because a thread that ended in the
 * middle of a call would leave it half done. Calls that use close(2), pthread_join() or the like
 * disable cancellation until they return. The others make their system calls by syscall(2), which
 * is no cancellation point. A request for cancellation stays pending meanwhile.
 */
#ifndef TIMERHUB_CANCELLATION_H
#define TIMERHUB_CANCELLATION_H

#include <pthread.h>

static inline int cancellation_hold(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancellation_release(const int *before)
{
	(void)pthread_setcancelstate(*before, NULL);
}

/*
 * Disables cancellation of the calling thread until the function that has this line returns. It
 * must be its first declaration.
 */
#define CANCELLATION_HELD                                                                          \
	__attribute__((cleanup(cancellation_release), unused)) int cancellation_before =           \
		cancellation_hold()

#endif
