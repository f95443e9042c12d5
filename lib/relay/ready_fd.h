/* SPDX-License-Identifier: MIT */
/*
 * Declares functions that raise and lower a flag. The flag is an eventfd, which is readable while
 * the flag is raised. In the relay, only ready_fd.c uses eventfd(2). Any thread may raise or lower
 * a flag.
 */
#ifndef RELAY_READY_FD_H
#define RELAY_READY_FD_H

/*
 * Returns the descriptor of a new flag, which the caller closes, or a negative errno. The new flag
 * is not raised.
 */
int ready_fd_open(void);
void ready_fd_raise(int flag);
void ready_fd_lower(int flag);

#endif
