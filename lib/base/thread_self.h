/* SPDX-License-Identifier: MIT */
/*
 * The number of the calling thread: its thread pointer, by the same instruction as the inline calls
 * of timerhub_loop.h. Not the address of a thread-local variable: each copy of the library in a
 * process has a variable of its own, so two copies would not agree about a thread, and musl's
 * dlopen() refuses a library whose thread-local memory is of the initial-exec model.
 */
#ifndef TIMERHUB_THREAD_SELF_H
#define TIMERHUB_THREAD_SELF_H

#include <timerhub_loop.h>

#ifndef TIMERHUB_LOOP_INLINE
#error "no instruction for the thread pointer of this machine"
#endif

/*
 * Returns a number that is not 0 and that no other living thread has. A new thread may get the
 * number of one that has ended.
 */
static inline uint64_t thread_self(void)
{
	return timerhub_loop_thread();
}

#endif
