/* SPDX-License-Identifier: MIT */
/*
 * The library's own threads block all signals, because they must not run the program's handlers.
 * Only the signals that the kernel raises because of what a thread has just done stay unblocked: if
 * a thread blocks one of these, the kernel kills the process instead of running the handler. A
 * sandbox that answers system calls by SIGSYS (SECCOMP_RET_TRAP) needs them, and so does a crash
 * reporter.
 *
 * So between any two instructions of such a thread a handler of the program can run after all, and
 * can interrupt a system call (EINTR).
 *
 * thread_hold_signals() unblocks no signal, because one that is pending would arrive at once.
 */
#ifndef TIMERHUB_THREAD_H
#define TIMERHUB_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/*
 * Returns the signals that the library's threads block: all except those that the kernel raises
 * because of a fault of the thread itself.
 */
static inline sigset_t thread_held_signals(void)
{
	static const int faults[] = { SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	sigset_t held;

	(void)sigfillset(&held);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigdelset(&held, faults[i]);
	return held;
}

/*
 * Blocks the signals of thread_held_signals() in the calling thread. All signals that are blocked
 * already stay blocked. Stores the old mask in *ret_before.
 */
static inline void thread_hold_signals(sigset_t *ret_before)
{
	sigset_t held = thread_held_signals();

	(void)pthread_sigmask(SIG_BLOCK, &held, ret_before);
}

/* Restores the signal mask that thread_hold_signals() has stored in *before. */
static inline void thread_release_signals(const sigset_t *before)
{
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/*
 * Returns a number that no other living thread has: the id of the calling thread's CPU clock.
 * Getting it costs no system call.
 */
static inline uint32_t thread_clock(void)
{
	clockid_t clock;

	(void)pthread_getcpuclockid(pthread_self(),
	                            &clock); /* it cannot fail for a living thread */
	return (uint32_t)clock;
}

/*
 * Starts a thread that runs `run`, which must call thread_begin() first. Returns 0 or a negative
 * errno.
 */
static inline int thread_create(pthread_t *ret_thread, void *(*run)(void *), void *argument)
{
	sigset_t before;
	int result;

	thread_hold_signals(&before);
	result = pthread_create(ret_thread, NULL, run, argument);
	thread_release_signals(&before);
	return -result;
}

/*
 * Unblocks the signals that the thread's own faults raise. A thread inherits the mask of the one
 * that started it, which may block them.
 */
static inline void thread_begin(void)
{
	sigset_t held = thread_held_signals();

	(void)pthread_sigmask(SIG_SETMASK, &held, NULL);
}

#endif
