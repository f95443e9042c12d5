/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a poll loop: reminders, see reminders.h. Usage: poll [FILE...]
 *
 * poll() needs no timeout computed from a list of timers: the queue's fd is the timeout.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "reminders.h"

int main(int argc, char **argv)
{
	struct timerhub_queue *queue = reminders_open(argc - 1, argv + 1);
	struct pollfd fds[1]; /* and one for each other source */

	fds[0] = (struct pollfd){ .fd = timerhub_queue_fd(queue), .events = POLLIN };
	while (reminders_left()) {
		if (poll(fds, 1, -1) < 0 && errno != EINTR) {
			perror("poll");
			break;
		}
		/* Never blocks, and returns 0 for nothing: it may be called on any wake-up. */
		if (timerhub_dispatch(queue, REMINDERS_BATCH) < 0)
			break;
	}
	return reminders_close();
}
