/* SPDX-License-Identifier: MIT */
/*
 * An eventfd that is readable or not. Two uses: the bell that wakes the owner, and what a queue's
 * notifier lets consumers poll.
 */
#ifndef TIMERHUB_BELL_H
#define TIMERHUB_BELL_H

/* Returns an eventfd, non-blocking and close-on-exec, or a negative errno. */
int bell_open(void);
void bell_close(int fd);

/* Make the bell readable. Any thread, signal-safe. */
void bell_ring(int fd);

/* Make the bell unreadable. */
void bell_clear(int fd);

#endif
