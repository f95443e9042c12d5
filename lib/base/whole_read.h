/* SPDX-License-Identifier: MIT */
/* Reads small files of the system or of an operator, for store and relay. */
#ifndef TIMERHUB_WHOLE_READ_H
#define TIMERHUB_WHOLE_READ_H

#include <stddef.h>

/*
 * Reads `bytes` bytes, or less if the file ends before. It goes on if the kernel returns fewer at a
 * time, or a signal interrupts it. Returns how many it has read, or a negative errno.
 */
long whole_read(int fd, void *buffer, size_t bytes);

#endif
