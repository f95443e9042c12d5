/* SPDX-License-Identifier: MIT */
/*
 * The job that the examples in this folder do, each in the event loop it is named after.
 *
 * Every FILE (standard input if there is none; a fifo is good) is read by a thread of its own. The
 * thread gives each line "MS TEXT" to the loop's thread, by a timer that is due at once. The loop's
 * thread sets a timeout of its own for the line, and prints TEXT when it expires. So one turn of
 * the loop brings both. The program ends when all files have ended and all is printed. These calls,
 * and the printing, are for the loop's thread only.
 */
#ifndef REMINDERS_H
#define REMINDERS_H

#include <stdbool.h>
#include <timerhub_loop.h>

/*
 * Starts the threads, or says why not and exits, as for anything that fails later. The event loop
 * must call timerhub_loop_turn() right before it blocks, and poll timerhub_loop_fd() for reading.
 * When that is readable there is nothing to do but the next turn.
 */
struct timerhub_loop *reminders_open(int file_count, char **files);

/* Returns whether the event loop must go on. The loop asks after each turn. */
bool reminders_left(void);

/* Returns the exit status: 1 if the event loop broke off and reminders are left. */
int reminders_close(void);

#endif
