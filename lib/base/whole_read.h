/* SPDX-License-Identifier: MIT */
/* Reads small files of the system or of an operator, for store and relay. */
#ifndef TIMERHUB_WHOLE_READ_H
#define TIMERHUB_WHOLE_READ_H

#include <stddef.h>

/*
 * Reads until `bytes` are there or the file ends, although the kernel may give less at a time and a
 * signal may interrupt it. Returns how many there are, or a negative errno.
 */
long whole_read(int fd, void *buffer, size_t bytes);

#endif
