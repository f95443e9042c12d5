/* SPDX-License-Identifier: MIT */
/*
 * A number for the calling thread: its thread pointer, which is read by the same instruction as in
 * the inline calls of timerhub_loop.h. The address of a thread-local variable would not do. Each
 * copy of the library in a process has its own variable, so two copies would not agree about a
 * thread. Also, musl's dlopen() refuses a library whose thread-local memory is of the initial-exec
 * model.
 */
#ifndef TIMERHUB_THREAD_SELF_H
#define TIMERHUB_THREAD_SELF_H

#include <timerhub_loop.h>

#ifndef TIMERHUB_LOOP_INLINE
#error "no instruction for the thread pointer of this machine"
#endif

/*
 * Returns a number that no other living thread has, and that is not 0. When a thread has ended, a
 * new one may get its number.
 */
static inline uint64_t thread_self(void)
{
	return timerhub_loop_thread();
}

#endif
