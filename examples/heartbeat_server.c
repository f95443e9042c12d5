/* SPDX-License-Identifier: MIT */
/*
 * A TCP server on epoll that closes silent connections. Each connection has its idle timeout as a
 * member, and each message moves it, which only stores a number there. The server reads all sockets
 * that are ready before it calls timerhub_loop_turn(), so that nobody is closed whose message is
 * there already. heartbeat_process.c has the parts that any server needs.
 *
 * Before it closes a silent connection, it sends "idle DEADLINE_NS CLOSED_NS\n", two times on
 * CLOCK_MONOTONIC. SIGINT and SIGTERM end it.
 *
 * Usage: heartbeat_server [-p PORT] [-t IDLE_MS] [-s STATUS_MS] [-o ORDER]
 *
 * PORT 0 (default): the kernel picks a free port, which is printed. IDLE_MS (default 3000): the
 * silence after which the server closes a connection. STATUS_MS: the interval at which the server
 * prints its counters. ORDER is the place of the turn in an iteration: `before` the wait (default),
 * `after` the wait, as in nginx and libevent, or between handlers that an iteration runs `one` by
 * one, as in asio and sd-event. run_before() is the one to copy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <timerhub_loop.h>
#include <unistd.h>

#include "heartbeat_process.h"

enum { BATCH = 256, RETRY_NS = 100000000 };

/* A connection: an entry of the table `connections`, which is indexed by descriptor. */
struct connection {
	struct timerhub_timeout idle;
	uint64_t heard_ns; /* time at which the connection's last message was read */
};

static struct {
	struct options options;
	struct process process;
	struct figures figures;
	struct timerhub_loop *loop;
	int loop_fd;                    /* -1 if the order needs none */
	int stop;                       /* a signal has come */
	struct timerhub_timeout status; /* timeout that prints the counters */
	/* timeout after which the server accepts again, if descriptors ran out */
	struct timerhub_timeout retry;
	struct connection *connections; /* table of connections, with process.fds_max entries */
} server = { .loop_fd = -1 };

static void connection_close(int fd, uint64_t *count)
{
	timerhub_timeout_remove(server.loop, &server.connections[fd].idle);
	server.figures.live--;
	(*count)++;
	close(fd);
}

/*
 * Reads from the connection. Returns 1 if data came, 0 if no data came, -1 if the connection has
 * ended.
 */
static int connection_read(int fd)
{
	struct connection *connection = &server.connections[fd];
	char bytes[512];
	const ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	server.figures.messages++;
	connection->heard_ns = process_now_ns();
	timerhub_timeout_set(server.loop, &connection->idle, server.options.idle_ns);
	return 1;
}

static void connection_farewell(int fd)
{
	const uint64_t deadline_ns = server.connections[fd].heard_ns + server.options.idle_ns;

	/*
	 * The send fails if the peer does not read; the connection is closed all the same.
	 */
	dprintf(fd, "idle %" PRIu64 " %" PRIu64 "\n", deadline_ns, process_now_ns());
	connection_close(fd, &server.figures.closed_idle);
}

/*
 * Closes a connection whose timeout has expired. It looks into the socket first, because a message
 * can still wait there if more sockets were ready than the batch could hold.
 */
static void connection_silent(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	const uint64_t begin_ns = process_now_ns();
	const struct connection *connection =
		(void *)((char *)timeout - offsetof(struct connection, idle));
	const int fd = (int)(connection - server.connections);
	const int alive = connection_read(fd);

	(void)loop;
	if (alive < 0)
		connection_close(fd, &server.figures.closed_peer);
	else if (alive == 0)
		connection_farewell(fd);
	server.figures.callbacks_ns += process_now_ns() - begin_ns;
}

static void connection_open(int fd)
{
	struct connection *connection = &server.connections[fd];

	server.figures.accepted++;
	server.figures.live++;
	*connection = (struct connection){ .heard_ns = process_now_ns() };
	if (timerhub_timeout_add(server.loop, &connection->idle, connection_silent) < 0 ||
	    timerhub_timeout_set(server.loop, &connection->idle, server.options.idle_ns) < 0 ||
	    process_watch(&server.process, EPOLL_CTL_ADD, fd, EPOLLIN) < 0)
		connection_close(fd, &server.figures.closed_peer);
}

static void accept_again(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop, (void)timeout;
	process_listen(&server.process, true);
}

static void accept_all(void)
{
	int fd;

	while ((fd = process_accept(&server.process)) >= 0)
		connection_open(fd);
	if (fd == -EMFILE)
		timerhub_timeout_set(server.loop, &server.retry, RETRY_NS);
}

static void status_due(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	timerhub_timeout_set(loop, timeout, server.options.status_ns);
	process_report("status", &server.figures);
}

/* Handles the events of a batch. Returns 1 if a signal wants the server to end, else 0. */
static int handle(const struct epoll_event *events, int count)
{
	int stop = 0;

	for (int i = 0; i < count; i++) {
		const int fd = events[i].data.fd;
		if (fd == server.process.signal_fd)
			stop = 1;
		else if (fd == server.process.listen_fd)
			accept_all();
		else if (fd == server.loop_fd) /* only wakes epoll; the next turn does the work */
			server.figures.wakes++;
		else if (connection_read(fd) < 0)
			connection_close(fd, &server.figures.closed_peer);
	}
	return stop;
}

/* Expires timeouts. Returns -1 after an error. */
static int turn(void)
{
	const uint64_t begin_ns = process_now_ns();
	const int r = timerhub_loop_turn(server.loop);

	server.figures.turns_ns += process_now_ns() - begin_ns;
	return r < 0 ? process_failed("turn", r) : 0;
}

/* Waits, and handles at most `max` events. Returns their count, or -1 after an error. */
static int wait_and_handle(int max, int timeout_ms)
{
	struct epoll_event events[BATCH];
	int count = epoll_wait(server.process.epoll_fd, events, max, timeout_ms);

	if (count < 0 && errno == EINTR) /* what came while the process was stopped */
		count = epoll_wait(server.process.epoll_fd, events, max, 0);
	if (count < 0)
		return process_failed("epoll_wait", errno);
	server.stop = handle(events, count);
	return count;
}

/*
 * Returns after how many events every socket that was ready has been served: epoll reports each
 * once before it reports one again. Beside the connections it watches the listener, the signals and
 * the loop.
 */
static uint64_t events_enough(void)
{
	return server.figures.live + 3;
}

/* Serves all ready sockets, so that the next turn hangs up nobody whose message is there. */
static int wait_and_handle_all(int timeout_ms)
{
	const uint64_t enough = events_enough();
	int r = wait_and_handle(BATCH, timeout_ms);

	for (uint64_t had = BATCH; r == BATCH && had < enough && !server.stop; had += BATCH)
		r = wait_and_handle(BATCH, 0);
	return r;
}

/* Runs the server with the turn right before the wait, which the loop's descriptor ends. */
static int run_before(void)
{
	server.loop_fd = timerhub_loop_fd(server.loop);
	if (server.loop_fd < 0)
		return process_failed("timerhub_loop_fd", server.loop_fd);
	int r = process_watch(&server.process, EPOLL_CTL_ADD, server.loop_fd, EPOLLIN);

	while (r >= 0 && !server.stop) {
		r = turn();
		if (r == 0)
			r = wait_and_handle_all(-1);
	}
	return r;
}

/*
 * Runs the server with the turn after the batch. What its callbacks have set needs a settle before
 * the wait.
 */
static int run_after(void)
{
	int r = 0;

	while (r >= 0 && !server.stop) {
		r = timerhub_loop_settle(server.loop, NULL);
		if (r < 0)
			return process_failed("settle", r);
		r = wait_and_handle_all(timerhub_loop_timeout_ms(server.loop));
		if (r >= 0)
			r = turn();
	}
	return r;
}

/*
 * Runs the server with one event in each iteration. It calls timerhub_loop_turn() only when no
 * event is left, or after as many events as there are sockets. An earlier call would hang up
 * connections that have unread messages.
 */
static int run_one(void)
{
	int r = 0;

	for (uint64_t handled = 0; r >= 0 && !server.stop;) {
		r = wait_and_handle(1, 0);
		if (r > 0 && ++handled < events_enough())
			continue;
		if (r >= 0)
			r = turn();
		if (r == 0)
			r = wait_and_handle(1, timerhub_loop_timeout_ms(server.loop));
		handled = 0;
	}
	return r;
}

static int open_timeouts(void)
{
	const struct timerhub_loop_config config = { .size = sizeof(config),
		                                     .flags = TIMERHUB_LOOP_OBSERVABLE,
		                                     .timeouts_max = server.process.fds_max + 2 };
	int r = -ENOMEM;

	server.connections = calloc(server.process.fds_max, sizeof(*server.connections));
	if (server.connections)
		r = timerhub_loop_open(&server.loop, NULL, &config);
	if (r == 0)
		r = timerhub_timeout_add(server.loop, &server.status, status_due);
	if (r == 0)
		r = timerhub_timeout_add(server.loop, &server.retry, accept_again);
	if (r == 0 && server.options.status_ns > 0)
		r = timerhub_timeout_set(server.loop, &server.status, server.options.status_ns);
	return r < 0 ? process_failed("timeouts", r) : 0;
}

int main(int argc, char **argv)
{
	static int (*const orders[])(
		void) = { [BEFORE] = run_before, [AFTER] = run_after, [ONE] = run_one };
	int r = -1;

	server.options = process_options(argc, argv);
	if (process_open(&server.process, &server.options) == 0 && open_timeouts() == 0 &&
	    process_announce(&server.process) == 0) {
		r = orders[server.options.order]();
		if (process_report("report", &server.figures) < 0)
			r = -1;
	}
	/* The end of the process closes the connections. */
	timerhub_loop_close(server.loop);
	free(server.connections);
	process_close(&server.process);
	return r < 0;
}
