/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether this machine lets the process use io_uring. The functions ask only the kernel,
 * and do not use the library. C and C++ programs can use this header. In a container, the kernel
 * may refuse even the first io_uring (ring), with EPERM or ENOSYS. If RLIMIT_MEMLOCK is small, the
 * kernel refuses a later ring with ENOMEM. Against RLIMIT_MEMLOCK the kernel counts the rings of
 * all processes of a user. The kernel still counts a closed ring until the ring's memory is freed.
 */
#ifndef TESTS_URING_ALLOWED_H
#define TESTS_URING_ALLOWED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXIT_SKIPPED 77 /* exit status that meson reports as "skipped" */

/*
 * Returns the errno with which the kernel refuses io_uring, or 0. The first call of uring_refused()
 * decides for the whole program. The kernel must grant as many rings as a test program uses at
 * once. If the kernel refuses one of these rings, the process closes all of them. Each later ring
 * is refused with the same errno. ENOSYS means that the kernel lacks a needed feature, or that the
 * library was built without io_uring.
 */
int uring_refused(void);

/* If io_uring is refused, prints the errno and ends the program as skipped. */
void uring_needed(void);

/*
 * The argument `result` is the result of timerhub_open() for a hub that insists on io_uring.
 * Returns true if other processes of this user hold all rings. If a process may lock any amount of
 * memory, its number of rings is not limited.
 */
bool uring_ran_out(int result);

#ifdef __cplusplus
}
#endif

#endif
