/* SPDX-License-Identifier: MIT */
/*
 * Checks who may use a loop. A loop belongs to one thread, and every call of another thread is
 * refused, unless the loop has TIMERHUB_LOOP_LOCKED. A forked child's copy of a loop belongs to no
 * thread. Any thread of the child may change the copy's memory, but until the child has called
 * timerhub_loop_adopt(), no timeout expires there and none can be added. Tested by
 * tests/service/test_loop.c.
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
 * Does the rest of loop_check() if the calling thread does not own the loop. Returns 0 or -EPERM.
 */
int loop_check_stranger(struct timerhub_loop *loop) __attribute__((cold));

/*
 * Checks whether the calling thread may make a call that changes only the loop's memory. Returns 0,
 * -EINVAL if `loop` is NULL, or -EPERM.
 */
static inline int loop_check(struct timerhub_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->front.thread == thread_self() || loop->front.thread == 0)
		return 0;
	return loop_check_stranger(loop);
}

/*
 * Checks whether the calling thread may use the loop's descriptor, clock or counter board. Returns
 * -EOWNERDEAD in a forked child that has not adopted the loop, else what loop_check() returns.
 */
int loop_check_alive(struct timerhub_loop *loop);

/*
 * Checks whether the calling thread may make a call that is forbidden in callbacks of the loop.
 * Returns -EBUSY inside a callback, and otherwise what loop_check_alive() does.
 */
int loop_check_idle(struct timerhub_loop *loop) __attribute__((cold));

/*
 * A quick check for calls that are forbidden in callbacks of the loop. Returns true if this thread
 * may make such a call. If it returns false, loop_check_idle() decides.
 */
static inline bool loop_is_idle(const struct timerhub_loop *loop)
{
	return loop && loop->front.thread == thread_self() && !loop->front.turning &&
	       loop_alive(loop);
}

/*
 * Lets timerhub-top(1) see which thread the loop belongs to. Call it only if loop->cell is not
 * NULL, which means that other processes can observe the loop.
 */
void loop_show_thread(struct timerhub_loop *loop) __attribute__((cold));

/* Makes the loop belong to the calling thread. */
static inline void loop_bind(struct timerhub_loop *loop)
{
	loop->front.thread = thread_self();
	if (loop->cell)
		loop_show_thread(loop);
}

#endif
