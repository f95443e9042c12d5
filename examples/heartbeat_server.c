/* SPDX-License-Identifier: MIT */
/*
 * Shows a TCP server that closes silent connections: one epoll loop holds its sockets and the
 * hub's queue, one timer per connection is moved by timerhub_rearm() at each message, and when the
 * timer comes the connection is closed. Moving a timer later is one atomic exchange, so a heartbeat
 * costs next to nothing, however many connections there are.
 *
 * Whatever arrives is a heartbeat. Before it closes a silent connection the server sends
 * "idle DEADLINE_NS CLOSED_NS\n", both on CLOCK_MONOTONIC. SIGINT and SIGTERM end it.
 *
 * Usage: heartbeat_server [-p PORT] [-t IDLE_MS] [-s STATUS_MS] [-r REPORT_FILE]
 * PORT 0 (default): any, it is printed. IDLE_MS: 3000. STATUS_MS: print figures this often. The
 * final report goes to REPORT_FILE, or to standard output.
 */
#define _GNU_SOURCE 1 /* accept4() */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <timerhub.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define RETRY_NS (100 * MS)

/* data of the timers that belong to no connection; a connection's is its fd */
#define STATUS UINT64_MAX
#define ACCEPT_AGAIN (UINT64_MAX - 1)

enum { BATCH = 256, CONNECTIONS_MAX = 1 << 20 };

/* Named by its fd: a connection is the entry of that number in a table. */
struct connection {
	bool open;
	timerhub_timer timer; /* 0 before the first; else compared with an event's: stale or ours */
	uint64_t deadline_ns; /* last message + idle timeout, on the hub's clock */
};

struct figures {
	uint64_t accepted;
	uint64_t live;
	uint64_t messages;
	uint64_t rearms;      /* calls of timerhub_rearm() that moved a timer */
	uint64_t closed_idle; /* by a timer */
	uint64_t closed_peer; /* by the other side, or by an error */
};

static struct {
	uint16_t port;
	uint64_t idle_ns;
	uint64_t status_ns; /* 0: no status lines */
	const char *report_path;

	struct timerhub *hub;
	struct timerhub_queue *queue;
	struct connection *connections;
	uint32_t connections_max; /* entries: one for every fd the process may have */
	int epoll_fd;
	int listen_fd;
	int signal_fd;
	struct figures figures;
} server = { .idle_ns = 3000 * MS, .epoll_fd = -1, .listen_fd = -1, .signal_fd = -1 };

/* Says what failed; for errors in errno and for negative errnos alike. */
static int failed(const char *what, int error)
{
	fprintf(stderr, "heartbeat_server: %s: %s\n", what, strerror(abs(error)));
	return -1;
}

static int report(FILE *out, const char *kind)
{
	const struct figures *f = &server.figures;
	struct timerhub_stats stats;
	const int r = timerhub_stats(server.hub, &stats);

	if (r < 0)
		return failed("stats", r);
	fprintf(out, "%s now_ns=%" PRIu64 " accepted=%" PRIu64 " live=%" PRIu64, kind,
	        timerhub_now(server.hub), f->accepted, f->live);
	fprintf(out, " messages=%" PRIu64 " rearms=%" PRIu64 " closed_idle=%" PRIu64, f->messages,
	        f->rearms, f->closed_idle);
	fprintf(out, " closed_peer=%" PRIu64 " refiled=%" PRIu64 " owner_wakeups=%" PRIu64,
	        f->closed_peer, stats.refiled, stats.owner_wakeups);
	fprintf(out, " submit_wakes=%" PRIu64 " queue_signals=%" PRIu64 " sleeper=%s\n",
	        stats.submit_wakes, stats.queue_signals,
	        stats.sleeper == TIMERHUB_SLEEPER_URING ? "io_uring" : "ppoll");
	return fflush(out) == 0 ? 0 : failed("report", errno);
}

static int report_at_end(void)
{
	FILE *file;
	int r;

	if (server.report_path == NULL)
		return report(stdout, "report");
	file = fopen(server.report_path, "we");
	if (file == NULL)
		return failed(server.report_path, errno);
	r = report(file, "report");
	if (fclose(file) != 0)
		r = failed(server.report_path, errno);
	return r;
}

static int watch(int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(server.epoll_fd, op, fd, &event) == 0 ? 0 : failed("epoll_ctl", errno);
}

static int connection_close(int fd)
{
	struct connection *connection = &server.connections[fd];

	/* -ENOENT is fine: the timer was delivered, which may be why we are here. */
	timerhub_cancel(server.hub, connection->timer);
	*connection = (struct connection){ 0 };
	server.figures.live--;
	return close(fd) == 0 ? 0 : failed("close", errno);
}

/* The connection was heard of now: its timer moves. If it has none, or it came, one is armed. */
static int connection_alive(int fd)
{
	struct connection *connection = &server.connections[fd];
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = timerhub_now(server.hub) + server.idle_ns,
		.data = (uint64_t)fd,
	};
	int r = timerhub_rearm(server.hub, connection->timer, spec.expires_ns, TIMERHUB_ABSOLUTE);

	if (r == 0)
		server.figures.rearms++;
	else if (r == -ENOENT)
		r = timerhub_arm(server.queue, &spec, &connection->timer);
	if (r < 0)
		return failed("arm", r);
	connection->deadline_ns = spec.expires_ns;
	return 0;
}

/* 1: the connection is alive; 0: nothing came; -1: it is over. */
static int connection_read(int fd)
{
	char bytes[512];
	const ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0) {
		server.figures.messages++;
		return connection_alive(fd) < 0 ? -1 : 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static int connection_readable(int fd)
{
	if (connection_read(fd) >= 0)
		return 0;
	server.figures.closed_peer++;
	return connection_close(fd);
}

/* Its timer came. A message may still wait unread, if we are late: then it is not silent at all. */
static int connection_silent(int fd)
{
	const uint64_t deadline_ns = server.connections[fd].deadline_ns;
	const int alive = connection_read(fd);
	char farewell[64];

	if (alive > 0)
		return 0;
	if (alive < 0) {
		server.figures.closed_peer++;
		return connection_close(fd);
	}
	const uint64_t closed_ns = timerhub_now(server.hub);
	const int length = snprintf(farewell, sizeof(farewell), "idle %" PRIu64 " %" PRIu64 "\n",
	                            deadline_ns, closed_ns);
	/* Only politeness: a peer that takes nothing is closed all the same. */
	(void)send(fd, farewell, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
	server.figures.closed_idle++;
	return connection_close(fd);
}

static int connection_open(int fd)
{
	if ((uint32_t)fd >= server.connections_max) /* somebody raised our limit from outside */
		return close(fd);
	server.connections[fd] = (struct connection){ .open = true };
	server.figures.accepted++;
	server.figures.live++;
	if (connection_alive(fd) == 0 && watch(EPOLL_CTL_ADD, fd, EPOLLIN) == 0)
		return 0;
	server.figures.closed_peer++;
	return connection_close(fd);
}

/* With no fd to spare a readable listener would keep the loop spinning: look away for a while. */
static int accept_later(void)
{
	const int r = timerhub_after(server.queue, RETRY_NS, ACCEPT_AGAIN, NULL);

	return r == 0 ? watch(EPOLL_CTL_MOD, server.listen_fd, 0) : failed("arm", r);
}

static int accept_failed(void)
{
	switch (errno) {
	case EAGAIN:
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case EPERM:
		return 0;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return accept_later();
	default:
		return failed("accept4", errno);
	}
}

static int accept_all(void)
{
	for (;;) {
		const int fd = accept4(server.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return accept_failed();
		if (connection_open(fd) < 0)
			return -1;
	}
}

static int timer_due(const struct timerhub_event *event)
{
	if (event->data == STATUS)
		return report(stdout, "status");
	if (event->data == ACCEPT_AGAIN)
		return watch(EPOLL_CTL_MOD, server.listen_fd, EPOLLIN);
	/* No handle is used twice: that of a connection closed since is not the entry's. */
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
	return count >= 0 ? 0 : failed("drain", count);
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
		else if (fd == server.signal_fd)
			stop = true;
		else if (fd == server.listen_fd)
			r = accept_all();
		else
			r = connection_readable(fd);
		if (r < 0)
			return -1;
	}
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
		const int count = epoll_wait(server.epoll_fd, events, BATCH, -1);
		if (count < 0 && errno != EINTR)
			return failed("epoll_wait", errno);
		r = handle(events, count);
	}
	return r < 0 ? -1 : 0;
}

/* One fd a connection: take all that the hard limit allows, and size the tables by it. */
static int open_tables(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return failed("getrlimit", errno);
	limit.rlim_cur = limit.rlim_max < CONNECTIONS_MAX ? limit.rlim_max : CONNECTIONS_MAX;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return failed("setrlimit", errno);
	server.connections_max = (uint32_t)limit.rlim_cur;
	server.connections = calloc(server.connections_max, sizeof(*server.connections));
	return server.connections != NULL ? 0 : failed("connection table", ENOMEM);
}

static int open_hub(void)
{
	const struct timerhub_config config = { .size = sizeof(config),
		                                .flags = TIMERHUB_OBSERVABLE, /* timerhub-top */
		                                .timers_max = server.connections_max + 2 };
	const struct timerhub_spec status = { .size = sizeof(status),
		                              .expires_ns = server.status_ns,
		                              .interval_ns = server.status_ns,
		                              .data = STATUS };
	int r = timerhub_open(&server.hub, &config);

	if (r == 0)
		r = timerhub_queue_open(server.hub, &server.queue, NULL);
	if (r == 0 && server.status_ns > 0)
		r = timerhub_arm(server.queue, &status, NULL);
	return r == 0 ? 0 : failed("timerhub", r);
}

static int open_listener(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(server.port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *any = (struct sockaddr *)&address;
	socklen_t size = sizeof(address);
	const int yes = 1;

	server.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server.listen_fd < 0 ||
	    setsockopt(server.listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(server.listen_fd, any, size) < 0 || listen(server.listen_fd, SOMAXCONN) < 0 ||
	    getsockname(server.listen_fd, any, &size) < 0)
		return failed("listen", errno);
	server.port = ntohs(address.sin_port);
	return 0;
}

static int open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return failed("sigprocmask", errno);
	server.signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return server.signal_fd >= 0 ? 0 : failed("signalfd", errno);
}

static int open_loop(void)
{
	server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll_fd < 0)
		return failed("epoll_create1", errno);
	if (watch(EPOLL_CTL_ADD, server.listen_fd, EPOLLIN) < 0 ||
	    watch(EPOLL_CTL_ADD, server.signal_fd, EPOLLIN) < 0 ||
	    watch(EPOLL_CTL_ADD, timerhub_queue_fd(server.queue), EPOLLIN) < 0)
		return -1;
	printf("listening on 127.0.0.1:%u\n", server.port);
	return fflush(stdout) == 0 ? 0 : failed("standard output", errno);
}

/* The hub first: it need not go on filing timers of connections that nobody serves any more. */
static void close_all(void)
{
	timerhub_close(server.hub);
	for (uint32_t fd = 0; server.connections != NULL && fd < server.connections_max; fd++)
		if (server.connections[fd].open)
			close((int)fd);
	free(server.connections);
	if (server.epoll_fd >= 0)
		close(server.epoll_fd);
	if (server.signal_fd >= 0)
		close(server.signal_fd);
	if (server.listen_fd >= 0)
		close(server.listen_fd);
}

/* In [0, max]; else it says so and exits. */
static uint64_t number(const char *text, uint64_t max)
{
	char *end;

	errno = 0;
	const unsigned long long value = strtoull(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' && value <= max)
		return value;
	fprintf(stderr, "heartbeat_server: not a number up to %" PRIu64 ": %s\n", max, text);
	exit(2);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "p:t:s:r:")) >= 0) {
		if (option == 'p')
			server.port = (uint16_t)number(optarg, UINT16_MAX);
		else if (option == 't')
			server.idle_ns = number(optarg, UINT32_MAX) * MS;
		else if (option == 's')
			server.status_ns = number(optarg, UINT32_MAX) * MS;
		else if (option == 'r')
			server.report_path = optarg;
		else
			exit(2);
	}
	if (optind == argc)
		return;
	fputs("usage: heartbeat_server [-p PORT] [-t IDLE_MS] [-s STATUS_MS] [-r FILE]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	int r;

	parse(argc, argv);
	/* Signals first: the hub's owner blocks all of its own accord, other threads would not. */
	r = open_signals();
	if (r == 0)
		r = open_tables();
	if (r == 0)
		r = open_listener();
	if (r == 0)
		r = open_hub();
	if (r == 0)
		r = open_loop();
	if (r == 0) {
		r = run();
		if (report_at_end() < 0)
			r = -1;
	}
	close_all();
	return r < 0;
}
