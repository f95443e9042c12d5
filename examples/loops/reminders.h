/* SPDX-License-Identifier: MIT */
/*
 * The job of the examples in this folder, each in the event loop of its name.
 *
 * Every FILE (standard input if there is none; a fifo is good) is read by a thread of its own. The
 * thread gives each line "MS TEXT" to the loop's thread, by a timer that is due at once. The loop's
 * thread sets a timeout of its own for the line, and prints TEXT when it expires. So one turn of
 * the loop handles timers of other threads and timeouts. The program ends when all files have ended
 * and all lines are printed. Only the loop's thread makes these calls, and prints.
 */
#ifndef REMINDERS_H
#define REMINDERS_H

#include <stdbool.h>
#include <timerhub_loop.h>

/*
 * Starts the threads. After an error, now or later, it prints the error and exits. The event loop
 * must call timerhub_loop_turn() immediately before it blocks, and poll timerhub_loop_fd() for
 * reading. If the descriptor is readable, only the next turn is needed.
 */
struct timerhub_loop *reminders_open(int file_count, char **files);

/* Returns whether the event loop must continue. The loop asks after each turn. */
bool reminders_left(void);

/* Returns the exit status: 1 if the event loop ended early and reminders are left. */
int reminders_close(void);

#endif
