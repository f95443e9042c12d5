/* SPDX-License-Identifier: MIT */
/*
 * Tells whether this machine lets the process use io_uring. It asks only the kernel, and can be
 * used from C and C++. A container may refuse the first ring (EPERM, ENOSYS). A small
 * RLIMIT_MEMLOCK may refuse a later one (ENOMEM): it counts the rings of all processes of a user,
 * and closed rings until their memory is freed.
 */
#ifndef TESTS_URING_ALLOWED_H
#define TESTS_URING_ALLOWED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXIT_SKIPPED 77 /* exit status that meson reports as "skipped" */

/*
 * Returns 0 if the process may use io_uring, or the errno with which the kernel refuses it. The
 * answer is found once and stays the same: either as many rings as a test uses at once are
 * permitted, or every later one is refused. ENOSYS also means that a feature is missing, or that
 * the library was built without io_uring.
 */
int uring_refused(void);

/* Ends the program as skipped if the process may not use io_uring. */
void uring_needed(void);

/*
 * Returns true if `result`, which comes from a timerhub_open() with TIMERHUB_SLEEPER_URING, means
 * that other processes of this user hold all the rings that the user may have.
 */
bool uring_ran_out(int result);

#ifdef __cplusplus
}
#endif

#endif
