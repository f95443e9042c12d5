/* SPDX-License-Identifier: MIT */
/*
 * timerhub in an epoll loop: reminders, see reminders.h. Usage: epoll [--edge] [FILE...]
 *
 * Level or edge, one dispatch at each turn is enough. When it stops at its maximum the queue's fd
 * stays readable, and an edge-triggered poller gets a new edge: no loop until "empty" is needed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "reminders.h"

/* The other sources of a real loop go where the comparison is. */
static int run(int epoll_fd, struct timerhub_queue *queue)
{
	struct epoll_event events[8];

	while (reminders_left()) {
		const int count = epoll_wait(epoll_fd, events, 8, -1);
		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++) {
			int r = 0;
			if (events[i].data.fd == timerhub_queue_fd(queue))
				r = timerhub_dispatch(queue, REMINDERS_BATCH);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const int edge = argc > 1 && strcmp(argv[1], "--edge") == 0;
	struct timerhub_queue *queue = reminders_open(argc - 1 - edge, argv + 1 + edge);
	const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int r;

	if (epoll_fd < 0)
		return 1;
	struct epoll_event event = { .events = edge ? EPOLLIN | EPOLLET : EPOLLIN,
		                     .data.fd = timerhub_queue_fd(queue) };
	r = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) < 0 ? -errno : 0;
	if (r == 0)
		r = run(epoll_fd, queue);
	if (r < 0)
		fprintf(stderr, "epoll: %s\n", strerror(-r));
	close(epoll_fd);
	return reminders_close();
}
