/* SPDX-License-Identifier: MIT */
/*
 * The job that the examples in this folder do, each in the event loop it is named after.
 *
 * Every FILE (standard input if there is none; a fifo is good) is read by a thread of its own. A
 * line "MS TEXT" arms a timer from that thread; the loop's thread prints TEXT when it comes. The
 * program ends when all files have ended and all is printed. These calls, and the
 * printing, are for the loop's thread alone.
 */
#ifndef REMINDERS_H
#define REMINDERS_H

#include <stdbool.h>
#include <timerhub.h>

/* Events for one turn of the loop; the rest wait for the next, and other sources get theirs. */
#define REMINDERS_BATCH 64

/*
 * Starts the threads, or says why not and exits, as for anything that fails later. The queue's fd
 * is to be watched, and the queue dispatched when it is readable.
 */
struct timerhub_queue *reminders_open(int file_count, char **files);

/* Whether the loop has to go on. */
bool reminders_left(void);

/* Returns the exit status: 1 if the loop broke off and reminders are left. */
int reminders_close(void);

#endif
