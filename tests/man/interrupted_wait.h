/* SPDX-License-Identifier: MIT */
/*
 * Included before a page's program: its first epoll_wait() is interrupted when the timeouts of
 * 50 ms are due, as after a SIGSTOP.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

static inline int interrupted_wait(int epoll_fd, struct epoll_event *events, int max,
                                   int timeout_ms)
{
	static int calls;

	if (calls++ > 0)
		return epoll_wait(epoll_fd, events, max, timeout_ms);
	nanosleep(&(struct timespec){ .tv_nsec = 60000000 }, NULL);
	errno = EINTR;
	return -1;
}

#define epoll_wait interrupted_wait
