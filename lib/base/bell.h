/* SPDX-License-Identifier: MIT */
/*
 * A bell is an eventfd that is used as a flag, readable or unreadable. The owner has a bell that
 * wakes it. Each queue has a bell, which its consumers poll.
 */
#ifndef TIMERHUB_BELL_H
#define TIMERHUB_BELL_H

/* Returns an eventfd, non-blocking and close-on-exec, or a negative errno. */
int bell_open(void);
void bell_close(int fd);

/* Make the bell readable. Thread-safe and async-signal-safe. */
void bell_ring(int fd);

/* Make the bell unreadable. */
void bell_clear(int fd);

#endif
