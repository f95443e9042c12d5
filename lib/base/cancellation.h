/* SPDX-License-Identifier: MIT */
/*
 * No public call is a cancellation point of pthread_cancel(3). Some calls use cancellation points
 * of the C library, such as close(2) or pthread_join(). These calls disable cancellation from their
 * first line to their return. All other calls make their system calls by syscall(2), which is not a
 * cancellation point. A request for cancellation stays pending until the call returns.
 */
#ifndef TIMERHUB_CANCELLATION_H
#define TIMERHUB_CANCELLATION_H

#include <pthread.h>

static inline int cancellation_hold(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* the call cannot fail */
	return before;
}

static inline void cancellation_release(const int *before)
{
	(void)pthread_setcancelstate(*before, NULL);
}

/* A function that must not be a cancellation point declares this macro before its variables. */
#define CANCELLATION_HELD                                                                          \
	__attribute__((cleanup(cancellation_release), unused)) int cancellation_before =           \
		cancellation_hold()

#endif
