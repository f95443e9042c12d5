/* SPDX-License-Identifier: MIT */
/* Reads small files of the system or of an operator, for store and relay. */
#ifndef TIMERHUB_WHOLE_READ_H
#define TIMERHUB_WHOLE_READ_H

#include <stddef.h>

/*
 * Reads `bytes` bytes, or up to the end of the file, in several reads if need be. Returns how many,
 * or a negative errno.
 */
long whole_read(int fd, void *buffer, size_t bytes);

#endif
