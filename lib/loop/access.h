/* SPDX-License-Identifier: MIT */
/*
 * Which thread may use a loop, and what a forked child may do with its copy. In the child nobody
 * owns the copy: any thread may change it there, but it neither runs nor gets new timeouts until
 * timerhub_loop_adopt() has made it the child's own. Tested by tests/service/test_loop.c.
 */
#ifndef TIMERHUB_LOOP_ACCESS_H
#define TIMERHUB_LOOP_ACCESS_H

#include "base/thread_self.h"
#include "loop/loop.h"

/* Returns false in a forked child that has not adopted the loop. */
static inline bool loop_alive(const struct timerhub_loop *loop)
{
	return fork_check_goes_on(&loop->fork_check);
}

/*
 * Decides about a call on another thread than the loop's. Returns 0 in a locked loop, and in a
 * forked child; else counts the call as refused, and returns -EPERM.
 */
int loop_check_stranger(struct timerhub_loop *loop) __attribute__((cold));

/* Checks a call that changes only the loop's memory. Returns 0, -EINVAL or -EPERM. */
static inline int loop_check(struct timerhub_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->front.thread == thread_self() || loop->front.thread == 0)
		return 0;
	return loop_check_stranger(loop);
}

/* Checks a call that needs more than memory. Also returns -EOWNERDEAD, in a forked child. */
int loop_check_alive(struct timerhub_loop *loop);

/* Checks a call that may not be made inside a callback. Also returns -EBUSY. */
int loop_check_idle(struct timerhub_loop *loop) __attribute__((cold));

/* Returns whether loop_check_idle() would return 0, or false if that takes longer to find out. */
static inline bool loop_is_idle(const struct timerhub_loop *loop)
{
	return loop && loop->front.thread == thread_self() && !loop->front.turning &&
	       loop_alive(loop);
}

/* Makes the calling thread the loop's, if it is not. */
static inline void loop_bind(struct timerhub_loop *loop)
{
	loop->front.thread = thread_self();
}

#endif
