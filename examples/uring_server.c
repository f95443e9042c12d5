/* SPDX-License-Identifier: MIT */
/*
 * An echo server on io_uring. One ring reports accepted connections, finished reads and writes, and
 * expired timers. In place of a timeout of the kernel for each request, each connection has one
 * timer, which each message moves. When it expires, the server shuts the connection down, so that
 * its request in the ring completes.
 *
 * It listens on 127.0.0.1. SIGINT and SIGTERM end it, and it then prints its counters.
 *
 * Usage: uring_server [-p PORT] [-t IDLE_MS] [-P]
 *
 * PORT 0 (default): the kernel picks a free port, which is printed. IDLE_MS (default 3000): the
 * silence after which a connection ends. -P: use a plain ring, without IORING_SETUP_DEFER_TASKRUN.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <liburing.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <timerhub_uring.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define ACCEPT_RETRY_NS (100 * MS)

/*
 * User data of the requests without a connection. The user data of a connection's request is the
 * address of the connection.
 */
enum { ON_TIMERS, ON_ACCEPT, ON_SIGNAL };

enum { RING_ENTRIES = 256, BATCH = 64, BUFFER_BYTES = 4096 };

/*
 * A connection, which always has one request in the ring: it receives bytes, or sends them back.
 */
struct connection {
	/* neighbours in the circular list that begins with server.connections */
	struct connection *next, *previous;
	timerhub_timer timer; /* idle timer, which has the connection as its data */
	int fd;
	unsigned length; /* number of received bytes to send back, or 0 while receiving */
	unsigned sent;   /* number of the received bytes that were sent back */
	char bytes[BUFFER_BYTES];
};

static struct {
	struct io_uring ring;
	struct timerhub *hub;
	struct timerhub_queue *queue;
	/* head of the circular list of connections, not itself a connection */
	struct connection connections;
	uint64_t idle_ns;
	uint16_t port;
	int listen_fd, signal_fd;
	bool accepting; /* true: the ring has an accept request */
	bool stopping;  /* true: the server ends when its requests in the ring have completed */
	struct signalfd_siginfo signal;
	uint64_t accepted, idle, echoed_bytes;
} server = { .idle_ns = 3000 * MS, .listen_fd = -1, .signal_fd = -1 };

/*
 * Ends the program if `result` is an error, for errors that it cannot handle.
 */
static int must(const char *what, int result)
{
	if (result >= 0)
		return result;
	fprintf(stderr, "uring_server: %s: %s\n", what, strerror(-result));
	exit(1);
}

static struct io_uring_sqe *request_new(void)
{
	struct io_uring_sqe *sqe;

	/*
	 * A submission makes the kernel take all entries, so the queue has space for new entries.
	 */
	while ((sqe = io_uring_get_sqe(&server.ring)) == NULL)
		must("submit", io_uring_submit(&server.ring));
	return sqe;
}

/* ---- connections ---- */

static void connection_receive(struct connection *connection)
{
	struct io_uring_sqe *sqe = request_new();

	connection->length = 0;
	connection->sent = 0;
	io_uring_prep_recv(sqe, connection->fd, connection->bytes, BUFFER_BYTES, 0);
	io_uring_sqe_set_data(sqe, connection);
}

static void connection_send(struct connection *connection)
{
	struct io_uring_sqe *sqe = request_new();

	io_uring_prep_send(sqe, connection->fd, connection->bytes + connection->sent,
	                   connection->length - connection->sent, MSG_NOSIGNAL);
	io_uring_sqe_set_data(sqe, connection);
}

/* Closes and frees a connection, which must have no request in the ring. */
static void connection_close(struct connection *connection)
{
	/*
	 * Whatever this returns, no event with the address of the connection is left: after 0 the
	 * timer will not expire, and after -ENOENT it has, and the program handles all events that
	 * it has drained before the next completion.
	 */
	timerhub_cancel(server.hub, connection->timer);
	connection->previous->next = connection->next;
	connection->next->previous = connection->previous;
	close(connection->fd);
	free(connection);
}

static void connection_open(int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	const struct timerhub_spec spec = { .size = sizeof(spec),
		                            .expires_ns = server.idle_ns,
		                            .ptr = connection };

	if (connection == NULL || timerhub_arm(server.queue, &spec, &connection->timer) < 0) {
		free(connection);
		close(fd);
		return;
	}
	connection->fd = fd;
	connection->next = &server.connections;
	connection->previous = server.connections.previous;
	connection->previous->next = connection->next->previous = connection;
	server.accepted++;
	connection_receive(connection);
}

static void connection_done(struct connection *connection, int result)
{
	if (result <= 0) {
		connection_close(connection);
		return;
	}
	/*
	 * If the timer has expired already, the connection is shut down and its next request fails,
	 * so the result needs no check.
	 */
	timerhub_rearm(server.hub, connection->timer, server.idle_ns, 0);
	if (connection->length == 0) {
		connection->length = (unsigned)result;
	} else {
		connection->sent += (unsigned)result;
		server.echoed_bytes += (unsigned)result;
	}
	if (connection->sent < connection->length)
		connection_send(connection);
	else
		connection_receive(connection);
}

/* ---- other completions ---- */

/*
 * Polls the queue's eventfd. The poll stays in the ring until a completion says that it has ended.
 */
static void timers_poll(void)
{
	struct io_uring_sqe *sqe = request_new();

	timerhub_uring_prep(sqe, server.queue);
	io_uring_sqe_set_data64(sqe, ON_TIMERS);
}

static void accept_next(void)
{
	struct io_uring_sqe *sqe = request_new();

	io_uring_prep_accept(sqe, server.listen_fd, NULL, NULL, SOCK_CLOEXEC);
	io_uring_sqe_set_data64(sqe, ON_ACCEPT);
	server.accepting = true;
}

static void accept_done(int result)
{
	server.accepting = false;
	if (result >= 0)
		connection_open(result);
	if (server.stopping)
		return;
	/*
	 * Without a free descriptor or memory, an immediate accept would fail again, so wait
	 * ACCEPT_RETRY_NS first.
	 */
	if (result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM)
		must("after", timerhub_after(server.queue, ACCEPT_RETRY_NS, 0, NULL));
	else
		accept_next();
}

static void timer_due(const struct timerhub_event *event)
{
	struct connection *connection = event->ptr;

	if (connection != NULL) {
		server.idle++;
		shutdown(connection->fd, SHUT_RDWR);
	} else if (!server.stopping) {
		accept_next();
	}
}

/*
 * Handles expired timers. If more than BATCH events are ready, the poll completes again for the
 * rest.
 */
static void timers_due(void)
{
	struct timerhub_event events[BATCH];
	int count = must("drain", timerhub_drain(server.queue, events, BATCH));

	for (int i = 0; i < count; i++)
		timer_due(&events[i]);
}

static void stop(void)
{
	server.stopping = true;
	shutdown(server.listen_fd, SHUT_RDWR);
	for (struct connection *connection = server.connections.next;
	     connection != &server.connections; connection = connection->next)
		shutdown(connection->fd, SHUT_RDWR);
}

/* ---- the loop ---- */

/* Handles a completion. Returns whether the completion says that timers have expired. */
static bool completed(const struct io_uring_cqe *cqe)
{
	switch (cqe->user_data) {
	case ON_TIMERS:
		must("poll", cqe->res);
		if (timerhub_uring_ended(cqe))
			timers_poll();
		return true;
	case ON_ACCEPT:
		accept_done(cqe->res);
		return false;
	case ON_SIGNAL:
		stop();
		return false;
	default:
		connection_done(io_uring_cqe_get_data(cqe), cqe->res);
		return false;
	}
}

static void run(void)
{
	while (!server.stopping || server.accepting ||
	       server.connections.next != &server.connections) {
		struct io_uring_cqe *cqe;
		unsigned head, count = 0;
		bool due = false;
		int result = io_uring_submit_and_wait(&server.ring, 1);

		if (result != -EINTR)
			must("wait", result);
		io_uring_for_each_cqe (&server.ring, head, cqe) {
			due |= completed(cqe);
			count++;
		}
		io_uring_cq_advance(&server.ring, count);
		/*
		 * Drain the queue last: a message that has been received moves its timer, and so
		 * withdraws an expiry that waits in the queue.
		 */
		if (due)
			timers_due();
	}
}

/* ---- open ---- */

static void open_ring(bool plain)
{
	int result = -EINVAL;

	if (!plain)
		result = io_uring_queue_init(RING_ENTRIES, &server.ring,
		                             IORING_SETUP_SINGLE_ISSUER |
		                                     IORING_SETUP_DEFER_TASKRUN);
	if (result == -EINVAL) /* Linux before 6.1 has no IORING_SETUP_DEFER_TASKRUN */
		result = io_uring_queue_init(RING_ENTRIES, &server.ring, 0);
	must("io_uring", result);
}

static void open_hub(void)
{
	must("hub", timerhub_open(&server.hub, NULL));
	must("queue", timerhub_queue_open(server.hub, &server.queue, NULL));
	timers_poll();
}

static void open_listener(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(server.port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *any = (struct sockaddr *)&address;
	socklen_t size = sizeof(address);
	const int yes = 1;

	server.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server.listen_fd < 0 ||
	    setsockopt(server.listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(server.listen_fd, any, size) < 0 || listen(server.listen_fd, SOMAXCONN) < 0 ||
	    getsockname(server.listen_fd, any, &size) < 0)
		must("listen", -errno);
	printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	fflush(stdout);
}

static void open_signals(void)
{
	struct io_uring_sqe *sqe = request_new();
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	server.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (server.signal_fd < 0)
		must("signalfd", -errno);
	io_uring_prep_read(sqe, server.signal_fd, &server.signal, sizeof(server.signal), 0);
	io_uring_sqe_set_data64(sqe, ON_SIGNAL);
}

static void close_all(void)
{
	timerhub_close(server.hub);
	io_uring_queue_exit(&server.ring);
	close(server.signal_fd);
	close(server.listen_fd);
}

/* Returns a number in [0, max], or prints an error and exits. */
static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || *text == '-' || value > max) {
		fprintf(stderr, "uring_server: %s: not a number up to %lu\n", text, max);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	bool plain = false;
	int option;

	while ((option = getopt(argc, argv, "p:t:P")) != -1) {
		if (option == 'p') {
			server.port = (uint16_t)number(optarg, UINT16_MAX);
		} else if (option == 't') {
			server.idle_ns = number(optarg, 1000000000) * MS;
		} else if (option == 'P') {
			plain = true;
		} else {
			fprintf(stderr, "Usage: uring_server [-p PORT] [-t IDLE_MS] [-P]\n");
			return 2;
		}
	}
	server.connections.next = server.connections.previous = &server.connections;
	open_ring(plain);
	open_hub();
	open_signals();
	open_listener();
	accept_next();
	run();
	close_all();
	printf("accepted=%" PRIu64 " idle=%" PRIu64 " echoed_bytes=%" PRIu64 "\n", server.accepted,
	       server.idle, server.echoed_bytes);
	return 0;
}
