/* SPDX-License-Identifier: MIT */
/*
 * Shows a TCP server that closes silent connections: one epoll loop holds its sockets and the hub's
 * queue, and each connection has one kept timer. After each batch of messages one call of
 * timerhub_rearm_many() moves the timers of the connections that were heard of. When a timer comes
 * its connection is closed, unless a message waits unread: then the same timer is re-armed once
 * more. Moving a timer later is one atomic exchange, so a heartbeat costs next to
 * nothing, however many connections there are. The parts that any server needs besides are in
 * heartbeat_process.c.
 *
 * Every message is a heartbeat. Before it closes a silent connection the server sends
 * "idle DEADLINE_NS CLOSED_NS\n", both on CLOCK_MONOTONIC. SIGINT and SIGTERM end it.
 *
 * Usage: heartbeat_server [-p PORT] [-t IDLE_MS] [-s STATUS_MS]
 * PORT 0 (default): any, it is printed. IDLE_MS: 3000. STATUS_MS: print figures this often.
 */
#define _GNU_SOURCE 1 /* accept4() */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <timerhub.h>
#include <unistd.h>

#include "heartbeat_process.h"

#define RETRY_NS UINT64_C(100000000)

/* data of the timers that belong to no connection; a connection's is its fd */
#define STATUS UINT64_MAX
#define ACCEPT_AGAIN (UINT64_MAX - 1)

enum { BATCH = 256 };

/* Named by its fd: a connection is the entry of that number in a table. */
struct connection {
	timerhub_timer timer; /* kept, from open to close; 0 if closed; compared with an event's */
	uint64_t deadline_ns; /* last message + idle timeout, on the hub's clock */
};

static struct {
	struct options options;
	struct process process;
	struct figures figures;
	struct timerhub *hub;
	struct timerhub_queue *queue;
	struct connection *connections; /* process.fds_max of them */
	int heard[BATCH];               /* connections of this batch that are alive */
	unsigned heard_count;
} server;

static int connection_close(int fd, uint64_t *count)
{
	struct connection *connection = &server.connections[fd];

	/* -ENOENT: there is none, because it could not be armed. */
	timerhub_cancel(server.hub, connection->timer);
	connection->timer = 0;
	server.figures.live--;
	(*count)++;
	return close(fd) == 0 ? 0 : process_failed("close", errno);
}

/* The connection is new: arm its timer, which is kept until the connection is closed. */
static int connection_watch(int fd)
{
	struct connection *connection = &server.connections[fd];
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE | TIMERHUB_KEEP,
		.expires_ns = timerhub_now(server.hub) + server.options.idle_ns,
		.data = (uint64_t)fd,
	};
	const int r = timerhub_arm(server.queue, &spec, &connection->timer);

	connection->deadline_ns = spec.expires_ns;
	return r == 0 ? 0 : process_failed("arm", r);
}

/*
 * The connections that were heard of in this batch: move their timers in one call, or start again
 * those that have just come. After the batch, so that no timeout is shorter than asked for.
 */
static int connections_alive(void)
{
	const uint64_t deadline_ns = timerhub_now(server.hub) + server.options.idle_ns;
	timerhub_timer timers[BATCH];
	int r;

	for (unsigned i = 0; i < server.heard_count; i++) {
		struct connection *connection = &server.connections[server.heard[i]];

		connection->deadline_ns = deadline_ns;
		timers[i] = connection->timer;
	}
	r = timerhub_rearm_many(server.hub, timers, server.heard_count, deadline_ns,
	                        TIMERHUB_ABSOLUTE);
	server.heard_count = 0;
	if (r < 0)
		return process_failed("rearm_many", r);
	server.figures.rearms += (uint64_t)r;
	return 0;
}

/* 1: the connection is alive; 0: nothing came; -1: it is over. */
static int connection_read(int fd)
{
	char bytes[512];
	const ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0) {
		server.figures.messages++;
		server.heard[server.heard_count++] = fd;
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static int connection_readable(int fd)
{
	if (connection_read(fd) >= 0)
		return 0;
	return connection_close(fd, &server.figures.closed_peer);
}

/* Its timer came. If we are late a message may wait unread: then the connection is not silent. */
static int connection_silent(int fd)
{
	const uint64_t deadline_ns = server.connections[fd].deadline_ns;
	const int alive = connection_read(fd);
	char farewell[64];

	if (alive > 0)
		return 0;
	if (alive < 0)
		return connection_close(fd, &server.figures.closed_peer);
	const int length = snprintf(farewell, sizeof(farewell), "idle %" PRIu64 " %" PRIu64 "\n",
	                            deadline_ns, timerhub_now(server.hub));
	/* Only politeness: a peer that takes nothing is closed too. */
	(void)send(fd, farewell, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
	return connection_close(fd, &server.figures.closed_idle);
}

static int connection_open(int fd)
{
	if ((uint32_t)fd >= server.process.fds_max) /* our limit was raised from outside */
		return close(fd);
	server.connections[fd] = (struct connection){ 0 };
	server.figures.accepted++;
	server.figures.live++;
	if (connection_watch(fd) == 0 &&
	    process_watch(&server.process, EPOLL_CTL_ADD, fd, EPOLLIN) == 0)
		return 0;
	return connection_close(fd, &server.figures.closed_peer);
}

static int listener_watch(uint32_t events)
{
	return process_watch(&server.process, EPOLL_CTL_MOD, server.process.listen_fd, events);
}

/* With no fd to spare a readable listener would keep the loop spinning: look away for a while. */
static int accept_later(void)
{
	const int r = timerhub_after(server.queue, RETRY_NS, ACCEPT_AGAIN, NULL);

	return r == 0 ? listener_watch(0) : process_failed("arm", r);
}

static int accept_failed(void)
{
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		return accept_later();
	return 0; /* no connection was left, or only that one had failed */
}

static int accept_all(void)
{
	for (;;) {
		const int fd =
			accept4(server.process.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return accept_failed();
		if (connection_open(fd) < 0)
			return -1;
	}
}

static int timer_due(const struct timerhub_event *event)
{
	if (event->data == STATUS)
		return process_report("status", server.hub, &server.figures);
	if (event->data == ACCEPT_AGAIN)
		return listener_watch(EPOLLIN);
	/* If the connection was closed since, the entry has no timer, or that of its successor. */
	if (server.connections[event->data].timer != event->timer)
		return 0;
	return connection_silent((int)event->data);
}

/* When it stops at BATCH the queue's fd stays readable, and the sockets get their turn first. */
static int timers_due(void)
{
	struct timerhub_event events[BATCH];
	const int count = timerhub_drain(server.queue, events, BATCH);

	for (int i = 0; i < count; i++)
		if (timer_due(&events[i]) < 0)
			return -1;
	return count >= 0 ? connections_alive() : process_failed("drain", count);
}

/* 0: go on; 1: a signal asked us to stop. */
static int handle(const struct epoll_event *events, int count)
{
	bool due = false;
	bool stop = false;

	for (int i = 0; i < count; i++) {
		const int fd = events[i].data.fd;
		int r = 0;
		if (fd == timerhub_queue_fd(server.queue))
			due = true;
		else if (fd == server.process.signal_fd)
			stop = true;
		else if (fd == server.process.listen_fd)
			r = accept_all();
		else
			r = connection_readable(fd);
		if (r < 0)
			return -1;
	}
	if (connections_alive() < 0)
		return -1;
	/*
	 * Timers last: a heartbeat of this batch withdraws its timer's expiry, and no event of this
	 * batch can meet a connection that a timer closed, or a new one under the same fd.
	 */
	if (due && timers_due() < 0)
		return -1;
	return stop;
}

static int run(void)
{
	struct epoll_event events[BATCH];
	int r = 0;

	while (r == 0) {
		const int count = epoll_wait(server.process.epoll_fd, events, BATCH, -1);
		if (count < 0 && errno != EINTR)
			return process_failed("epoll_wait", errno);
		r = handle(events, count);
	}
	return r < 0 ? -1 : 0;
}

static int open_timers(void)
{
	const struct timerhub_config config = { .size = sizeof(config),
		                                .flags = TIMERHUB_OBSERVABLE, /* timerhub-top */
		                                .timers_max = server.process.fds_max + 2 };
	const struct timerhub_spec status = { .size = sizeof(status),
		                              .expires_ns = server.options.status_ns,
		                              .interval_ns = server.options.status_ns,
		                              .data = STATUS };
	int r = timerhub_open(&server.hub, &config);

	if (r == 0)
		r = timerhub_queue_open(server.hub, &server.queue, NULL);
	if (r == 0 && server.options.status_ns > 0)
		r = timerhub_arm(server.queue, &status, NULL);
	if (r < 0)
		return process_failed("timerhub", r);
	return process_watch(&server.process, EPOLL_CTL_ADD, timerhub_queue_fd(server.queue),
	                     EPOLLIN);
}

static int open_connections(void)
{
	server.connections = calloc(server.process.fds_max, sizeof(*server.connections));
	return server.connections != NULL ? 0 : process_failed("connection table", ENOMEM);
}

int main(int argc, char **argv)
{
	int r = -1;

	server.options = process_options(argc, argv);
	if (process_open(&server.process, &server.options) == 0 && open_connections() == 0 &&
	    open_timers() == 0 && process_announce(&server.process) == 0) {
		r = run();
		if (process_report("report", server.hub, &server.figures) < 0)
			r = -1;
	}
	/* Our end, which is near, closes the connections. */
	timerhub_close(server.hub);
	free(server.connections);
	process_close(&server.process);
	return r < 0;
}
