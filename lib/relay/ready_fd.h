/* SPDX-License-Identifier: MIT */
/*
 * A flag as a file descriptor that is readable while the flag is raised. The only file that uses
 * eventfd(2) for it is ready_fd.c. Any thread may call.
 */
#ifndef RELAY_READY_FD_H
#define RELAY_READY_FD_H

/* Returns a descriptor, which the caller closes, or a negative errno. The flag is not raised. */
int ready_fd_open(void);
void ready_fd_raise(int flag);
void ready_fd_lower(int flag);

#endif
