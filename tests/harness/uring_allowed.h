/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether this machine lets the process use io_uring. Only the kernel is asked, and the
 * library is not used. C and C++ programs can use this header. A container refuses the first ring,
 * with EPERM or ENOSYS. A small RLIMIT_MEMLOCK refuses a later ring with ENOMEM. The kernel counts
 * the rings of all processes of a user, and a closed ring counts until the kernel has freed it.
 */
#ifndef TESTS_URING_ALLOWED_H
#define TESTS_URING_ALLOWED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXIT_SKIPPED 77 /* meson reports this status as "skipped" */

/*
 * Returns the errno with which io_uring is refused, or 0. The first call decides for the whole
 * program: the kernel must grant as many rings as a test program uses at once. If the kernel grants
 * fewer rings, the process gives up all rings, and each later ring is refused with the same errno.
 * The answer is ENOSYS if the kernel lacks a feature that the library needs, or if the library was
 * built without io_uring.
 */
int uring_refused(void);

/* Ends the program as skipped, with the errno printed, if io_uring is refused. */
void uring_needed(void);

/*
 * Returns true if a hub that insists on io_uring failed to open with `result` because other
 * processes of this user hold all rings. A process that may lock any amount of memory has no such
 * limit.
 */
bool uring_ran_out(int result);

#ifdef __cplusplus
}
#endif

#endif
