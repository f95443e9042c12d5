/* SPDX-License-Identifier: MIT */
/*
 * Whether this machine lets the process use io_uring, from the kernel alone, for C and C++. A
 * container may refuse the first ring (EPERM, ENOSYS), a small RLIMIT_MEMLOCK a later one (ENOMEM):
 * it counts the rings of all processes of a user, and closed ones until their memory is freed.
 */
#ifndef TESTS_URING_ALLOWED_H
#define TESTS_URING_ALLOWED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXIT_SKIPPED 77 /* exit status that meson reports as "skipped" */

/*
 * 0 or the errno, decided once: as many rings as a test uses at once are granted, or each later one
 * is refused with the same errno. ENOSYS also stands for a missing feature and for a library
 * without io_uring.
 */
int uring_refused(void);

/* Ends the program as skipped if it is refused. */
void uring_needed(void);

/*
 * Whether `result`, of a timerhub_open() that insists on io_uring, means that other processes of
 * this user hold all rings.
 */
bool uring_ran_out(int result);

#ifdef __cplusplus
}
#endif

#endif
