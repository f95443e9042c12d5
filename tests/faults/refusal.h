/* SPDX-License-Identifier: MIT */
/*
 * Refusals of the kernel: at the k-th call of a kind, or of all that follow.
 *
 * A seccomp filter hands the calls to a thread outside it, which counts them and answers; so it
 * works for what the C library and liburing call too, without privileges, and needs no ptrace,
 * which would be in a leak checker's way.
 */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H

#include <stdbool.h>

#define REFUSE_ALWAYS (~0u)

/*
 * From now on these calls, of this thread and of those it starts, are counted. Once in a process.
 * False, with the reason printed, where the kernel does not allow that.
 */
bool refusals_open(const int *calls, unsigned count);

/*
 * When all hubs are closed: the watching thread ends (ThreadSanitizer lets a process with threads
 * linger for a second). The kernel then refuses such calls with ENOSYS.
 */
void refusals_close(void);

/* Refuse the k-th such call from now on (k from 1), and those that follow: `times` in all. */
void refuse(int call, int error, unsigned k, unsigned times);

/* No more of it; returns how many were refused since refuse(). */
unsigned refuse_no_more(void);

/* How many were refused so far. */
unsigned refused(void);

/* Refuse all such calls of all threads, for good, by a filter of the usual kind. */
void deny_everywhere(int call, int error);

#endif
