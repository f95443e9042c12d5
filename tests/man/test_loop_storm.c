/* SPDX-License-Identifier: MIT */
/*
 * Runs the loop of timerhub_loop(3)'s example with many more ready sockets than fit in its array,
 * as after a stop of the process for longer than the idle timeout. All must be served, and none
 * hung up before. An eventfd stands for a connection, because it takes one descriptor.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#define CONNECTIONS 900

static int fds[CONNECTIONS];
static int served, hung_up_early;

/* The process is stopped in its first wait, and all peers send in the meantime. */
static int stopped_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	static int calls;

	for (int i = 0; calls == 0 && i < CONNECTIONS; i++)
		if (eventfd_write(fds[i], 1) < 0)
			perror("eventfd_write");
	if (calls++ == 0)
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	return epoll_wait(epoll_fd, events, max, timeout_ms);
}

static void said(const char *format)
{
	if (strstr(format, "bytes"))
		served++;
	else
		hung_up_early += served < CONNECTIONS;
}

#define epoll_wait stopped_wait
#define printf(format, ...) (said(format), (void)sizeof(printf(format, __VA_ARGS__)))
int page_main(void); /* of the example, not used */
#define main page_main
#include "timerhub_loop_example.h"
#undef main
#undef printf

int main(void)
{
	static struct connection all[CONNECTIONS];
	const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct timerhub_loop *loop;

	if (epoll_fd < 0 || timerhub_loop_open(&loop, NULL, NULL) < 0)
		return 1;
	for (int i = 0; i < CONNECTIONS; i++) {
		all[i].name = "one";
		all[i].fd = fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fds[i] < 0 || connection_open(loop, epoll_fd, &all[i]))
			return 1;
	}
	if (run(loop, epoll_fd) != 0)
		return 1;
	timerhub_loop_close(loop);
	printf("%d connections: served %d, hung up too early %d\n", CONNECTIONS, served,
	       hung_up_early);
	return served != CONNECTIONS || hung_up_early != 0;
}
