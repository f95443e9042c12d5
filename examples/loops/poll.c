/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a poll loop. It prints reminders, see reminders.h. Usage: poll [FILE...]
 *
 * poll() needs no timeout, because the timerhub loop's fd becomes readable when a timeout is due.
 * If the timerhub loop has no hub, the program can instead give ppoll() the timeout that
 * timerhub_loop_timeout() returns.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "reminders.h"

int main(int argc, char **argv)
{
	struct timerhub_loop *loop = reminders_open(argc - 1, argv + 1);
	struct pollfd fds[1]; /* a real program has more entries, for its sockets */

	fds[0] = (struct pollfd){ .fd = timerhub_loop_fd(loop), .events = POLLIN };
	while (timerhub_loop_turn(loop) >= 0 && reminders_left()) {
		int count;
		do {
			count = poll(fds, 1, -1);
		} while (count < 0 &&
		         errno ==
		                 EINTR); /* sockets can be ready even if the wait was interrupted */
		if (count < 0) {
			perror("poll");
			break;
		}
	}
	return reminders_close();
}
