/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel refuse system calls of one kind. The k-th call is the first refused call. The
 * test chooses k, and whether the kernel refuses one call, several calls or all calls.
 *
 * A seccomp filter reports the calls to a watching thread, which counts and answers them. The
 * filter does not apply to the watching thread. With a filter, the refusals also reach the calls of
 * the C library and of liburing, and need no privileges. The filter does not use ptrace, because a
 * leak checker needs ptrace.
 */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H

#include <stdbool.h>

#define REFUSE_ALWAYS (~0u)

/*
 * Counts the system calls in `calls` from now on, in the calling thread and in all threads that it
 * starts. A process may call refusals_open() only once. If the kernel does not allow the filter,
 * refusals_open() prints the reason and returns false.
 */
bool refusals_open(const int *calls, unsigned count);

/*
 * Ends the counting of system calls. The caller must close all hubs first. The watching thread ends
 * too. If a thread still ran at the exit of the process, ThreadSanitizer would delay the exit by a
 * second. After refusals_close() the kernel refuses the counted calls with ENOSYS.
 */
void refusals_close(void);

/*
 * Makes the kernel refuse `times` calls of `call` with `error`, from the k-th call on. The next
 * call has the number k = 1.
 */
void refuse(int call, int error, unsigned k, unsigned times);

/*
 * Ends the refusals that refuse() began. Returns the number of calls that were refused since
 * refuse().
 */
unsigned refuse_no_more(void);

/* Returns the number of calls refused since the last refuse(). */
unsigned refused(void);

/*
 * Makes the kernel refuse this system call in all threads of the process from now on, by an
 * ordinary seccomp filter.
 */
void deny_everywhere(int call, int error);

#endif
