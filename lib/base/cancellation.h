/* SPDX-License-Identifier: MIT */
/*
 * No public call is a cancellation point. Calls that reach one of the C library's (close(2),
 * pthread_join(), posix_fallocate()) hold cancellation off from their first line to their return;
 * all others make their system calls by syscall(2), which is none. A request stays pending.
 */
#ifndef TIMERHUB_CANCELLATION_H
#define TIMERHUB_CANCELLATION_H

#include <pthread.h>

static inline int cancellation_hold(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* cannot fail */
	return before;
}

static inline void cancellation_release(const int *before)
{
	(void)pthread_setcancelstate(*before, NULL);
}

/* The first declaration of a function: until it returns, its thread is not cancelled. */
#define CANCELLATION_HELD                                                                          \
	__attribute__((cleanup(cancellation_release), unused)) int cancellation_before =           \
		cancellation_hold()

#endif
