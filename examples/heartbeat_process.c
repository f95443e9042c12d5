/* SPDX-License-Identifier: MIT */
/*
 * The parts of the heartbeat server that have nothing to do with timers: options, signals, listener
 * and epoll. The server has one thread.
 */
#define _GNU_SOURCE 1 /* makes sys/socket.h declare accept4() */

#include "heartbeat_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum { FDS_MAX = 1 << 20 };

int process_failed(const char *what, int error)
{
	fprintf(stderr, "heartbeat_server: %s: %s\n", what, strerror(abs(error)));
	return -1;
}

/* Returns a number in [0, max], or prints an error and exits. */
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

static enum order order(const char *text)
{
	static const char *const names[] = {
		[BEFORE] = "before", [AFTER] = "after", [ONE] = "one"
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0)
			return (enum order)i;
	fprintf(stderr, "heartbeat_server: not before, after or one: %s\n", text);
	exit(2);
}

struct options process_options(int argc, char **argv)
{
	struct options options = { .idle_ns = 3000 * MS };
	int option;

	while ((option = getopt(argc, argv, "p:t:s:o:")) >= 0) {
		if (option == 'p')
			options.port = (uint16_t)number(optarg, UINT16_MAX);
		else if (option == 't')
			options.idle_ns = number(optarg, UINT32_MAX) * MS;
		else if (option == 's')
			options.status_ns = number(optarg, UINT32_MAX) * MS;
		else if (option == 'o')
			options.order = order(optarg);
		else
			exit(2);
	}
	if (optind == argc)
		return options;
	fputs("usage: heartbeat_server [-p PORT] [-t IDLE_MS] [-s STATUS_MS] [-o ORDER]\n", stderr);
	exit(2);
}

/*
 * Each connection needs a descriptor, so raise the limit of descriptors as far as the kernel
 * permits it.
 */
static int raise_file_limit(struct process *process)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return process_failed("getrlimit", errno);
	limit.rlim_cur = limit.rlim_max < FDS_MAX ? limit.rlim_max : FDS_MAX;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return process_failed("setrlimit", errno);
	process->fds_max = (uint32_t)limit.rlim_cur;
	return 0;
}

static int open_signals(struct process *process)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	/*
	 * Ignore SIGPIPE, which a write to a closed connection would raise.
	 */
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return process_failed("signals", errno);
	process->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return process->signal_fd >= 0 ? 0 : process_failed("signalfd", errno);
}

static int open_listener(struct process *process, uint16_t port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
		                             .sin_port = htons(port),
		                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int yes = 1;

	process->listen_fd = fd;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return process_failed("listen", errno);
	return 0;
}

int process_watch(const struct process *process, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(process->epoll_fd, op, fd, &event) == 0)
		return 0;
	return process_failed("epoll_ctl", errno);
}

int process_open(struct process *process, const struct options *options)
{
	*process = (struct process){ .epoll_fd = -1, .listen_fd = -1, .signal_fd = -1 };
	if (raise_file_limit(process) < 0 || open_signals(process) < 0 ||
	    open_listener(process, options->port) < 0)
		return -1;
	process->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (process->epoll_fd < 0)
		return process_failed("epoll_create1", errno);
	if (process_watch(process, EPOLL_CTL_ADD, process->listen_fd, EPOLLIN) < 0)
		return -1;
	return process_watch(process, EPOLL_CTL_ADD, process->signal_fd, EPOLLIN);
}

void process_close(struct process *process)
{
	const int fds[] = { process->epoll_fd, process->signal_fd, process->listen_fd };

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int process_announce(const struct process *process)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	if (getsockname(process->listen_fd, (struct sockaddr *)&address, &size) < 0)
		return process_failed("getsockname", errno);
	printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	return fflush(stdout) == 0 ? 0 : process_failed("standard output", errno);
}

int process_listen(const struct process *process, bool watch)
{
	return process_watch(process, EPOLL_CTL_MOD, process->listen_fd, watch ? EPOLLIN : 0);
}

int process_accept(const struct process *process)
{
	const int fd = accept4(process->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0 && (uint32_t)fd < process->fds_max)
		return fd;
	if (fd >= 0) { /* another process has raised the limit of descriptors */
		close(fd);
		return -EAGAIN;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
		return -EAGAIN; /* no connection waits, or the next connection has failed */
	process_listen(process, false);
	return -EMFILE;
}

uint64_t process_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

int process_report(const char *kind, const struct figures *figures)
{
	printf("%s now_ns=%" PRIu64 " accepted=%" PRIu64 " live=%" PRIu64, kind, process_now_ns(),
	       figures->accepted, figures->live);
	printf(" messages=%" PRIu64 " closed_idle=%" PRIu64 " closed_peer=%" PRIu64,
	       figures->messages, figures->closed_idle, figures->closed_peer);
	printf(" wakes=%" PRIu64 " loop_ns=%" PRIu64 "\n", figures->wakes,
	       figures->turns_ns - figures->callbacks_ns);
	return fflush(stdout) == 0 ? 0 : process_failed("report", errno);
}
