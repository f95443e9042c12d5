/* SPDX-License-Identifier: MIT */
/*
 * Declares the common job of the examples in this folder. Each example does the job in the event
 * loop that the example is named after.
 *
 * Each FILE has a thread that reads it. Without a FILE the thread reads standard input. A FILE may
 * be a fifo. The thread gives each line "MS TEXT" to the loop's thread, by a timer that is due at
 * once. The loop's thread sets a timeout for the line, and prints TEXT when the timeout expires. In
 * each turn, the loop handles the due timers of the reading threads and its own due timeouts. The
 * program ends when all files have ended and all lines are printed. Only the loop's thread calls
 * the functions of this file, and only it prints.
 */
#ifndef REMINDERS_H
#define REMINDERS_H

#include <stdbool.h>
#include <timerhub_loop.h>

/*
 * Opens a hub and a loop, and starts the threads that read. Returns the loop. After an error in
 * reminders_open() or later, the program prints the error and exits. The event loop must call
 * timerhub_loop_turn() after its sockets, and poll timerhub_loop_fd() for reading.
 */
struct timerhub_loop *reminders_open(int file_count, char **files);

/*
 * Returns whether the event loop must continue. The event loop calls this function after each turn.
 */
bool reminders_left(void);

/* Closes the loop and the hub. Returns the exit status, which is 1 if reminders are left. */
int reminders_close(void);

#endif
