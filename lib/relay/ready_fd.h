/* SPDX-License-Identifier: MIT */
/*
 * A flag that a poller can see: an eventfd that is readable while the flag is raised. Any thread
 * may call these functions.
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
