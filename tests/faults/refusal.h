/* SPDX-License-Identifier: MIT */
/*
 * Calls that the kernel refuses: the k-th call of a kind, or all from then on.
 *
 * A seccomp filter reports the calls to a thread outside the filter, which counts and answers them.
 * So this works for calls of the C library and of liburing too, without privileges. It does not use
 * ptrace, which a leak checker needs.
 */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H

#include <stdbool.h>

#define REFUSE_ALWAYS (~0u)

/*
 * From now on these calls, of this thread and of those it starts, are counted. Once in a process.
 * Returns false, with the reason printed, if the kernel does not allow that.
 */
bool refusals_open(const int *calls, unsigned count);

/*
 * Call this when all hubs are closed. The watching thread ends (ThreadSanitizer delays the exit of
 * a process with threads for a second). The kernel then refuses such calls with ENOSYS.
 */
void refusals_close(void);

/* From now on, refuse the k-th such call (k from 1) and the following calls: `times` in all. */
void refuse(int call, int error, unsigned k, unsigned times);

/* End the refusals; returns how many calls were refused since refuse(). */
unsigned refuse_no_more(void);

/* Returns how many calls were refused so far. */
unsigned refused(void);

/* Refuse all such calls of all threads from now on, by an ordinary filter. */
void deny_everywhere(int call, int error);

#endif
