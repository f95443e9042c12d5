/* SPDX-License-Identifier: MIT */
/* Lets the rings of a program's hubs look like those of Linux before 6.15. */
#ifndef TESTS_OLDER_URING_H
#define TESTS_OLDER_URING_H

#include <stdbool.h>

/* They lack IORING_FEAT_NO_IOWAIT. On such a kernel, it is true once there was a ring. */
extern bool uring_is_older;

/* The library's call has come here. */
extern bool uring_was_made;

#endif
