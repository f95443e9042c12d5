/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel refuse system calls: the k-th call of a kind, or all calls from the k-th on.
 *
 * A seccomp filter reports the calls to a thread outside the filter, which counts and answers them.
 * So the refusals reach the calls of the C library and of liburing too, and need no privileges. The
 * filter does not use ptrace, which a leak checker needs.
 */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H

#include <stdbool.h>

#define REFUSE_ALWAYS (~0u)

/*
 * From now on, count these calls of this thread and of the threads that it starts. A process may
 * call this once. If the kernel does not allow the filter, the function prints the reason and
 * returns false.
 */
bool refusals_open(const int *calls, unsigned count);

/*
 * End the counting, when all hubs are closed. The function ends the watching thread, since
 * ThreadSanitizer delays the exit of a process with threads for a second. After that the kernel
 * refuses such calls with ENOSYS.
 */
void refusals_close(void);

/* From now on, refuse `times` such calls, beginning with the k-th. The next call has k = 1. */
void refuse(int call, int error, unsigned k, unsigned times);

/* End the refusals. Returns the number of calls that were refused after refuse(). */
unsigned refuse_no_more(void);

/* Returns the number of calls that were refused so far. */
unsigned refused(void);

/* Refuse all such calls of all threads from now on, by an ordinary filter. */
void deny_everywhere(int call, int error);

#endif
