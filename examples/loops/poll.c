/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a poll loop: reminders, see reminders.h. Usage: poll [FILE...]
 *
 * poll() needs no timeout: the loop's fd is the timeout. A loop without a hub, on whose queue no
 * thread arms, can do without the fd and pass timerhub_loop_timeout() to ppoll() instead.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "reminders.h"

int main(int argc, char **argv)
{
	struct timerhub_loop *loop = reminders_open(argc - 1, argv + 1);
	struct pollfd fds[1]; /* and one for each other source */

	fds[0] = (struct pollfd){ .fd = timerhub_loop_fd(loop), .events = POLLIN };
	while (timerhub_loop_turn(loop) >= 0 && reminders_left()) {
		if (poll(fds, 1, -1) < 0 && errno != EINTR) {
			perror("poll");
			break;
		}
	}
	return reminders_close();
}
