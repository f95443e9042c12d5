/* SPDX-License-Identifier: MIT */
/* A descriptor that is readable while the flag is up: an eventfd, at home here. Any thread. */
#ifndef RELAY_READY_FD_H
#define RELAY_READY_FD_H

/* A descriptor, to be closed, or a negative errno. The flag is down. */
int ready_fd_open(void);
void ready_fd_raise(int flag);
void ready_fd_lower(int flag);

#endif
