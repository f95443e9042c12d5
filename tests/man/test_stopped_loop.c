/* SPDX-License-Identifier: MIT */
/*
 * Runs the event loop of timerhub_loop(3)'s example, which loop_example.h contains, with more
 * connections than 64 of its arrays hold. The process is stopped in its first wait: all timeouts
 * fall due, and then data comes to all, more than one read takes. Nobody may be hung up, and the
 * sockets that stay ready must not keep the turn waiting.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define CONNECTIONS 600
#define ARRAY 8 /* the example's */
#define MESSAGES 3

static int stopped_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms);
static int said(const char *format, ...);
int example(void);

#define epoll_wait stopped_wait
#define printf said
#define main example
#include "loop_example.h"
#undef epoll_wait
#undef printf
#undef main

static struct connection all[CONNECTIONS];
static struct timerhub *hub;
static int served, hung_up, waits;

static void must(const char *what, int good)
{
	if (good)
		return;
	perror(what);
	exit(2);
}

/* what the example prints */
static int said(const char *format, ...)
{
	hung_up += strstr(format, "idle") != NULL;
	served += strstr(format, "bytes") != NULL;
	return 0;
}

static int stopped_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	must("array", max == ARRAY);
	waits++;
	if (waits == 1) {
		must("advance", timerhub_advance(hub, 1000 * MS, NULL) == 0);
		for (int i = 0; i < CONNECTIONS; i++)
			must("write", eventfd_write(all[i].fd, MESSAGES) == 0);
		errno = EINTR;
		return -1;
	}
	if (timeout_ms == 0)
		return epoll_wait(epoll_fd, events, max, 0);
	connections = 0; /* the turn has passed: end the loop */
	return 0;
}

int main(void)
{
	const struct timerhub_config manual = { .size = sizeof(manual), .flags = TIMERHUB_MANUAL };
	const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct timerhub_loop *loop;

	must("hub", timerhub_open(&hub, &manual) == 0);
	must("loop", timerhub_loop_open(&loop, hub, NULL) == 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		all[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
		must("connection", connection_open(loop, epoll_fd, &all[i]) == 0);
	}
	must("run", run(loop, epoll_fd) == 0);
	timerhub_loop_close(loop);
	timerhub_close(hub);
	/* one interrupted wait, one for each full array, and a few at the end */
	printf("served %d, hung up %d of %d, %d waits\n", served, hung_up, CONNECTIONS, waits);
	return hung_up > 0 || served < CONNECTIONS || waits > CONNECTIONS / ARRAY + 4;
}
