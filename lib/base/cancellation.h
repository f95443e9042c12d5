/* SPDX-License-Identifier: MIT */
/*
 * No public call is a cancellation point of pthread_cancel(3): those that use close(2),
 * pthread_join() or the like disable cancellation from first line to return, the others make their
 * system calls by syscall(2), which is none. A request stays pending.
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

/* Before the variables of such a function. */
#define CANCELLATION_HELD                                                                          \
	__attribute__((cleanup(cancellation_release), unused)) int cancellation_before =           \
		cancellation_hold()

#endif
