/* SPDX-License-Identifier: MIT */
/* Lets the rings of a program's hubs look like those of Linux before 6.15. */
#ifndef TESTS_OLDER_URING_H
#define TESTS_OLDER_URING_H

#include <stdbool.h>

/*
 * Set this to true, and the rings that the library makes lack IORING_FEAT_NO_IOWAIT. On a kernel
 * that has not got this feature, it becomes true with the first ring.
 */
extern bool uring_is_older;

/* True once the library has made a ring. */
extern bool uring_was_made;

#endif
