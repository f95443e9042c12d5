/* SPDX-License-Identifier: MIT */
/*
 * A flag as a file descriptor that is readable while the flag is raised. Only ready_fd.c uses
 * eventfd(2) for such flags. Any thread may call.
 */
#ifndef RELAY_READY_FD_H
#define RELAY_READY_FD_H

/*
 * Returns a descriptor, which the caller closes, or a negative errno. The flag of a new descriptor
 * is not raised.
 */
int ready_fd_open(void);
void ready_fd_raise(int flag);
void ready_fd_lower(int flag);

#endif
