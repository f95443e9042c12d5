/* SPDX-License-Identifier: MIT */
/*
 * The job that each example of this folder does, in the event loop that it is named after.
 *
 * A thread reads each FILE, or standard input if there is none. For each line "MS TEXT" it arms a
 * timer that is due at once, and so gives the line to the loop's thread, which sets a timeout and
 * prints TEXT when MS milliseconds have passed. A turn handles both, the timers of the threads and
 * the loop's own timeouts. A FILE may be a fifo. The program ends when all files have ended and all
 * lines are printed. The loop's thread alone calls the functions below, and it alone prints.
 *
 * To compile one: cc -pthread epoll.c reminders.c $(pkg-config --cflags --libs timerhub)
 */
#ifndef REMINDERS_H
#define REMINDERS_H

#include <stdbool.h>
#include <timerhub_loop.h>

/*
 * Opens a hub and a loop, starts the threads that read, and returns the loop. The caller calls
 * timerhub_loop_turn() after its sockets, and polls timerhub_loop_fd() for reading. If anything
 * fails, now or later, the program prints the error and exits.
 */
struct timerhub_loop *reminders_open(int file_count, char **files);

/*
 * Returns whether the event loop must continue. The event loop calls this function after each turn.
 */
bool reminders_left(void);

/* Closes the loop and the hub. Returns the exit status, which is 1 if reminders are left. */
int reminders_close(void);

#endif
