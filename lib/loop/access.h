/* SPDX-License-Identifier: MIT */
/*
 * Checks who may use a loop. A loop belongs to one thread, and every call of another thread is
 * refused. A forked child's copy of a loop belongs to no thread. Any thread of the child may change
 * the copy's memory, but until the child has called timerhub_loop_adopt(), no timeout expires there
 * and none can be added. Tested by tests/service/test_loop.c.
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
 * Checks a call that does not come from the loop's thread. Returns 0 if it is allowed, else -EPERM.
 */
int loop_check_stranger(struct timerhub_loop *loop) __attribute__((cold));

/* Checks whether the calling thread may use the loop. Returns 0, -EINVAL or -EPERM. */
static inline int loop_check(struct timerhub_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->front.thread == thread_self() || loop->front.thread == 0)
		return 0;
	return loop_check_stranger(loop);
}

/*
 * Checks a call that may use the descriptor, clock or board. Returns 0, -EINVAL, -EPERM or
 * -EOWNERDEAD.
 */
int loop_check_alive(struct timerhub_loop *loop);

/* Checks what loop_check_alive() checks, and that no callback makes the call (-EBUSY). */
int loop_check_idle(struct timerhub_loop *loop) __attribute__((cold));

/* Returns true if this is the loop's thread, and no callback is running. */
static inline bool loop_is_idle(const struct timerhub_loop *loop)
{
	return loop && loop->front.thread == thread_self() && !loop->front.turning &&
	       loop_alive(loop);
}

/* Shows timerhub-top(1) the loop's thread. Only for an observable loop, which has a `cell`. */
void loop_show_thread(struct timerhub_loop *loop) __attribute__((cold));

/* Makes the loop belong to the calling thread. */
static inline void loop_bind(struct timerhub_loop *loop)
{
	loop->front.thread = thread_self();
	if (loop->cell)
		loop_show_thread(loop);
}

#endif
