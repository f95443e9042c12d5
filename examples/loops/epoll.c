/* SPDX-License-Identifier: MIT */
/*
 * timerhub in an epoll loop. It prints reminders, see reminders.h.
 * Usage: epoll [--edge] [FILE...]
 *
 * The turn comes after all sockets that are ready. So nobody's timeout expires while his data waits
 * in a socket, and a callback may free a connection, because no event points at it any more. If a
 * turn leaves due timers, the timerhub loop's fd stays readable, and gives a new edge.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "reminders.h"

enum { BATCH = 8 };

static int descriptors = 1; /* how many epoll watches; a server counts its sockets too */

/*
 * Waits, and serves all sockets that are ready, even if they are more than one array holds. epoll
 * reports each ready socket once before it reports one again, so as many events as there are
 * descriptors are enough, and sockets that are always ready do not keep the turn waiting.
 */
static int serve(int epoll_fd)
{
	struct epoll_event events[BATCH];
	int left = descriptors, timeout_ms = -1, count;

	do {
		count = epoll_wait(epoll_fd, events, BATCH, timeout_ms);
		if (count < 0 && errno != EINTR)
			return -errno;
		/*
		 * A real server serves the sockets here. An event of the timerhub loop's fd needs
		 * nothing, because the next turn does the work.
		 */
		left -= count;
		timeout_ms = 0;
		/* A wait that was interrupted says nothing about the sockets, so ask again. */
	} while (left > 0 && (count == BATCH || count < 0));
	return 0;
}

static int run(int epoll_fd, struct timerhub_loop *loop)
{
	int r = 0;

	while (r >= 0) {
		r = timerhub_loop_turn(loop); /* immediately before epoll_wait() blocks */
		if (r < 0 || !reminders_left())
			break;
		r = serve(epoll_fd);
	}
	return r;
}

int main(int argc, char **argv)
{
	const int edge = argc > 1 && strcmp(argv[1], "--edge") == 0;
	struct timerhub_loop *loop = reminders_open(argc - 1 - edge, argv + 1 + edge);
	const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int r;

	if (epoll_fd < 0)
		return 1;
	struct epoll_event event = { .events = edge ? EPOLLIN | EPOLLET : EPOLLIN,
		                     .data.fd = timerhub_loop_fd(loop) };
	r = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) < 0 ? -errno : 0;
	if (r == 0)
		r = run(epoll_fd, loop);
	if (r < 0)
		fprintf(stderr, "epoll: %s\n", strerror(-r));
	close(epoll_fd);
	return reminders_close();
}
