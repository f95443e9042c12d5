/* SPDX-License-Identifier: MIT */
/*
 * Does this machine let the process use io_uring? The answer is the kernel's, not the library's.
 * For C and C++. A container refuses the first ring, with EPERM or ENOSYS. A small RLIMIT_MEMLOCK
 * refuses a later ring with ENOMEM. The kernel counts the rings of all processes of a user, and a
 * closed ring counts until the kernel has freed it.
 */
#ifndef TESTS_URING_H
#define TESTS_URING_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXIT_SKIPPED 77 /* meson reports this status as "skipped" */

/*
 * Returns why io_uring cannot be used, as an errno, or 0. The first call decides for the whole
 * program: it must be granted as many rings as a program of tests uses at once. If it is granted
 * fewer, the process gives up all of them, and each later ring is refused with the same errno. The
 * answer is ENOSYS for a kernel that lacks what the library needs of io_uring, and for a library
 * that was built without.
 */
int uring_refused(void);

/* Ends the program as skipped, with the errno printed, if io_uring is refused. */
void uring_needed(void);

/*
 * Returns true if a hub that insists on io_uring failed to open with `result` because other
 * processes of this user hold all rings by now. A process that may lock any amount of memory never
 * runs out of rings.
 */
bool uring_ran_out(int result);

#ifdef __cplusplus
}
#endif

#endif
