/* SPDX-License-Identifier: MIT */
/*
 * Included before a program: in its first wait it becomes a daemon. Its loop must end with an error
 * then, because no timeout expires in a forked child. The parent's exit status is 0 if the child's
 * is 1.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int forked_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	static int calls;
	int status;

	if (calls++ > 0)
		return epoll_wait(epoll_fd, events, max, timeout_ms);
	if (fork() != 0)
		exit(wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 1);
	return 0;
}

#define epoll_wait forked_wait
