/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel refuse the k-th system call of a kind, some or all from there on. A seccomp
 * filter reports the calls to a thread outside the filter, which counts and answers them: so calls
 * of the C library and liburing are reached too, without privileges, and not by ptrace, which a
 * leak checker needs.
 */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H

#include <stdbool.h>

#define REFUSE_ALWAYS (~0u)

/*
 * Counts `calls` of this thread and those that it starts, once in a process. False, with the reason
 * printed, if the kernel does not allow the filter.
 */
bool refusals_open(const int *calls, unsigned count);

/*
 * After all hubs are closed. Ends the thread too, for which ThreadSanitizer would delay the exit by
 * a second. From now on the kernel answers counted calls with ENOSYS.
 */
void refusals_close(void);

/* The next call is k = 1. */
void refuse(int call, int error, unsigned k, unsigned times);

/* Returns how many calls were refused since refuse(). */
unsigned refuse_no_more(void);

unsigned refused(void);

/* In all threads of the process, by an ordinary filter. */
void deny_everywhere(int call, int error);

#endif
