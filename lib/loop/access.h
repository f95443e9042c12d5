/* SPDX-License-Identifier: MIT */
/*
 * Checks who may use a loop. A loop belongs to one thread, and every call of another thread is
 * refused. The copy of a loop in a forked child belongs to no thread: any thread of the child may
 * change its memory, but nothing expires there and no timeout can be added until
 * timerhub_loop_adopt() has made the copy the child's own. Tested by tests/service/test_loop.c.
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
 * Decides whether a thread that the loop does not belong to may make a call. In a locked loop and
 * in a forked child it may, and the result is 0. Otherwise the call is counted as refused, and the
 * result is -EPERM.
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
 * Checks a call as loop_check() does, and returns -EOWNERDEAD in a forked child that has not
 * adopted the loop. It is for calls that use a descriptor, the clock or the board, because the
 * child shares those with its parent.
 */
int loop_check_alive(struct timerhub_loop *loop);

/* Checks a call as loop_check_alive() does, and returns -EBUSY inside a callback of the loop. */
int loop_check_idle(struct timerhub_loop *loop) __attribute__((cold));

/*
 * Returns true if loop_check_idle() would certainly return 0. If it returns false, call that to
 * find out. It is inline because every turn begins with it.
 */
static inline bool loop_is_idle(const struct timerhub_loop *loop)
{
	return loop && loop->front.thread == thread_self() && !loop->front.turning &&
	       loop_alive(loop);
}

/* Says in an observable loop's cell which thread has it. */
void loop_show_thread(struct timerhub_loop *loop) __attribute__((cold));

/* Makes the loop belong to the calling thread. */
static inline void loop_bind(struct timerhub_loop *loop)
{
	loop->front.thread = thread_self();
	if (loop->cell)
		loop_show_thread(loop);
}

#endif
