/* SPDX-License-Identifier: MIT */
/*
 * An echo server on epoll, which closes a connection after two seconds of silence, or if its client
 * does not read (a short send). Without descriptors left it spins, because the listener stays
 * readable; heartbeat_server.c has a retry. README.md shows parts of this file. Usage: idle_server
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <timerhub_loop.h>
#include <unistd.h>

struct connection {
	struct timerhub_timeout idle; /* first, so that hang_up() can cast; a second: offsetof() */
	int fd;
};

static void hang_up(struct timerhub_loop *loop, struct timerhub_timeout *idle)
{
	timerhub_timeout_remove(loop, idle); /* the timeout's memory may be freed now */
	close(((struct connection *)idle)->fd);
	free(idle);
}

static void echo(struct timerhub_loop *loop, struct connection *one)
{
	char bytes[4096];
	const ssize_t count = recv(one->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	/* The timeout is due in 2 s. The call stores a number in it. */
	timerhub_timeout_set(loop, &one->idle, 2000000000);
	if (count <= 0 || send(one->fd, bytes, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL) < count)
		hang_up(loop, &one->idle);
}

static void greet(struct timerhub_loop *loop, int epoll_fd, int fd)
{
	/* calloc(), because a timeout must be zeroed */
	struct connection *one = calloc(1, sizeof(*one));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = one };

	if (!one || timerhub_timeout_add(loop, &one->idle, hang_up) < 0)
		abort(); /* the process has no memory */
	one->fd = fd;
	timerhub_timeout_set(loop, &one->idle, 2000000000);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		/* also called if accept() failed; `fd` is -1 after a failed accept() */
		hang_up(loop, &one->idle);
}

int main(void)
{
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	const int epoll_fd = epoll_create1(0);
	struct sockaddr_in address = { 0 };
	struct epoll_event clients = { .events = EPOLLIN, .data.ptr = &address };
	struct epoll_event timeouts = { .events = EPOLLIN }, events[64];
	struct timerhub_loop *loop;

	if (timerhub_loop_open(&loop, NULL, NULL) < 0 || listen(listener, 64) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timerhub_loop_fd(loop), &timeouts) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &clients) < 0 ||
	    getsockname(listener, (void *)&address, &(socklen_t){ sizeof(address) }) < 0) {
		perror("idle_server");
		return 1;
	}
	fprintf(stderr, "try: nc localhost %d (Debian: netcat-openbsd)\n", ntohs(address.sin_port));
	for (;;) {
		timerhub_loop_turn(loop); /* calls hang_up() for each timeout that is due */
		int waits = 0, count;
		do { /* serve all ready sockets before the turn; EINTR: perhaps after a SIGSTOP */
			count = epoll_wait(epoll_fd, events, 64, waits == 0 ? -1 : 0);
			for (int i = 0; i < count; i++)
				if (events[i].data.ptr == &address)
					greet(loop, epoll_fd, accept(listener, NULL, NULL));
				else if (events[i].data.ptr) /* NULL stands for the loop */
					echo(loop, events[i].data.ptr);
		} while (++waits < 64 && (count == 64 || (count < 0 && errno == EINTR)));
	}
}
