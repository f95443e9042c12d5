/* SPDX-License-Identifier: MIT */
/*
 * Measures beanstalkd. The server runs in a process of its own, which is killed at the end of this
 * one, and syncs its log at every put (-f 0). Each thread has a connection to the server's Unix
 * socket, which is the cheapest transport of beanstalkd.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "workload.h"

#define PROGRAM "beanstalkd"
#define SOCKET_NAME "socket"
#define LOOK_NS (5 * NS_PER_MS)
#define STARTS_WITHIN_NS (10 * NS_PER_SECOND)
#define ANSWER_BYTES (64 + DURABLE_BYTES + 3)

static pid_t server;
static _Thread_local int connection = -1;

__attribute__((noreturn)) static void be_server(void)
{
	char address[128];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(address, sizeof(address), "unix:%s/%s", bench_folder, SOCKET_NAME);
	(void)execlp(PROGRAM, PROGRAM, "-b", bench_folder, "-f", "0", "-l", address, (char *)NULL);
	_exit(127);
}

/* Connect to the server. Returns the socket, or a negative number if no server listens. */
static int try_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", bench_folder,
	               SOCKET_NAME);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void beanstalkd_open(const struct subject_setup *setup)
{
	uint64_t start_ns = now_ns();

	(void)setup;
	server = fork();
	if (server == 0)
		be_server();
	while ((connection = try_connect()) < 0) {
		if (now_ns() - start_ns > STARTS_WITHIN_NS || waitpid(server, NULL, WNOHANG) != 0)
			subject_fail("starting " PROGRAM, 0);
		sleep_until_ns(now_ns() + LOOK_NS);
	}
}

/*
 * Send a request and read the server's answer. The answer must begin with `expected`. If the answer
 * has data, `more` is the number of bytes after the first line.
 */
static int ask(const char *request, size_t bytes, const char *expected, size_t more,
               char answer[ANSWER_BYTES])
{
	size_t got = 0;

	if (write(connection, request, bytes) != (ssize_t)bytes)
		return -EIO;
	for (;;) {
		ssize_t count = read(connection, answer + got, ANSWER_BYTES - 1 - got);
		const char *line;

		if (count <= 0)
			return -EIO;
		got += (size_t)count;
		answer[got] = '\0';
		line = strchr(answer, '\n');
		if (line && answer + got == line + 1 + more)
			return strncmp(answer, expected, strlen(expected)) == 0 ? 0 : -EIO;
	}
}

/* Send a put: "put PRIORITY DELAY TIME-TO-RUN BYTES". beanstalkd has delays of whole seconds. */
static int beanstalkd_arm(uint32_t timer, uint64_t delay_ns)
{
	char request[64 + DURABLE_BYTES + 2], answer[ANSWER_BYTES];
	int head = snprintf(request, sizeof(request), "put 0 %llu 60 %d\r\n",
	                    delay_ns / NS_PER_SECOND, DURABLE_BYTES);
	size_t bytes = (size_t)head + DURABLE_BYTES + 2;

	(void)timer;
	if (connection < 0)
		connection = try_connect();
	memset(request + head, 'o', DURABLE_BYTES);
	memcpy(request + bytes - 2, "\r\n", 2);
	return connection < 0 ? -ECONNREFUSED : ask(request, bytes, "INSERTED ", 0, answer);
}

static int beanstalkd_finish(void)
{
	static const char reserve[] = "reserve\r\n";
	char request[64], answer[ANSWER_BYTES];
	unsigned long long job;
	int bytes;

	if (ask(reserve, sizeof(reserve) - 1, "RESERVED ", DURABLE_BYTES + 2, answer) < 0 ||
	    sscanf(answer, "RESERVED %llu", &job) != 1)
		return -EIO;
	bytes = snprintf(request, sizeof(request), "delete %llu\r\n", job);
	return ask(request, (size_t)bytes, "DELETED", 0, answer);
}

SUBJECT(beanstalkd, "beanstalkd", DURABLE | FINISHES | CROSS, .open = beanstalkd_open,
        .arm = beanstalkd_arm, .finish = beanstalkd_finish)
