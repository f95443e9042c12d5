/* SPDX-License-Identifier: MIT */
/*
 * The echo server of README.md on epoll, with main() and with the loop that a real server needs. It
 * closes a connection after two seconds of silence, and when its client does not read, which makes
 * a send short. If the process may open no more descriptors, it spins, because the listener stays
 * readable; heartbeat_server.c retries instead.
 *
 * Usage: idle_server
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <timerhub_loop.h>
#include <unistd.h>

enum { BATCH = 64 };

struct connection {
	struct timerhub_timeout idle; /* first member, so hang_up() can cast; others: offsetof() */
	int fd;
};

static int connections;

static void hang_up(struct timerhub_loop *loop, struct timerhub_timeout *idle)
{
	timerhub_timeout_remove(loop, idle); /* the timeout's memory may be freed now */
	close(((struct connection *)idle)->fd);
	free(idle);
	connections--;
}

static void greet(struct timerhub_loop *loop, int epoll_fd, int fd)
{
	/* calloc(), because a timeout must be zeroed */
	struct connection *one = calloc(1, sizeof(*one));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = one };

	if (!one || timerhub_timeout_add(loop, &one->idle, hang_up) < 0)
		abort(); /* the process has no memory */
	one->fd = fd;
	connections++;
	timerhub_timeout_set(loop, &one->idle, 2000000000);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		/* also called if accept() failed; `fd` is -1 after a failed accept() */
		hang_up(loop, &one->idle);
}

static void echo(struct timerhub_loop *loop, struct connection *one)
{
	char bytes[4096];
	const ssize_t count = recv(one->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	/* due in 2 s; this only stores a number in the timeout */
	timerhub_timeout_set(loop, &one->idle, 2000000000);
	if (count <= 0 || send(one->fd, bytes, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL) < count)
		hang_up(loop, &one->idle);
}

/*
 * Waits, and serves all sockets that are ready. If one were left out and its timeout was due, the
 * turn would hang it up although its data is there. That happens when the process was stopped for a
 * while, which also interrupts the wait (EINTR). epoll reports each ready socket once before it
 * reports one again, so as many events as there are descriptors are enough, and busy sockets do not
 * keep the turn waiting.
 */
static int serve(struct timerhub_loop *loop, int epoll_fd, int *listener)
{
	int left = connections + 2; /* 2: the listener and the loop's descriptor */
	int timeout_ms = -1, count;
	struct epoll_event events[BATCH];

	do {
		count = epoll_wait(epoll_fd, events, BATCH, timeout_ms);
		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++)
			if (events[i].data.ptr == listener)
				greet(loop, epoll_fd, accept(*listener, NULL, NULL));
			else if (events[i].data.ptr) /* NULL stands for the loop */
				echo(loop, events[i].data.ptr);
		left -= count;
		timeout_ms = 0;
	} while (left > 0 && (count == BATCH || count < 0));
	return 0;
}

int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), r;
	const int epoll_fd = epoll_create1(0);
	struct epoll_event clients = { .events = EPOLLIN, .data.ptr = &listener };
	struct epoll_event timeouts = { .events = EPOLLIN, .data.ptr = NULL };
	struct sockaddr_in address = { 0 };
	struct timerhub_loop *loop;

	if (timerhub_loop_open(&loop, NULL, NULL) < 0 || listen(listener, 64) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timerhub_loop_fd(loop), &timeouts) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &clients) < 0 ||
	    getsockname(listener, (void *)&address, &(socklen_t){ sizeof(address) }) < 0) {
		perror("idle_server");
		return 1;
	}
	fprintf(stderr, "try: nc localhost %d (Debian: netcat-openbsd)\n", ntohs(address.sin_port));
	do {
		r = timerhub_loop_turn(loop); /* calls hang_up() for each timeout that is due */
		if (r >= 0)
			r = serve(loop, epoll_fd, &listener);
	} while (r >= 0);
	timerhub_loop_close(loop);
	fprintf(stderr, "idle_server: %s\n", strerror(-r));
	return 1;
}
