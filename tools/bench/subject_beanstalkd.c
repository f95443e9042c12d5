/* SPDX-License-Identifier: MIT */
/*
 * Measures beanstalkd. The server runs in a process of its own, which is killed at the end of this
 * one, and syncs its log at every put (-f 0). Each thread has a connection to the server's Unix
 * socket, which is the cheapest transport of beanstalkd.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "workload.h"

#define PROGRAM "beanstalkd"
#define SOCKET_NAME "socket"
#define LOOK_NS (5 * NS_PER_MS)
#define STARTS_WITHIN_NS (10 * NS_PER_S)

static pid_t server;
static _Thread_local FILE *connection; /* for reading; its descriptor is written to */

__attribute__((noreturn)) static void be_server(void)
{
	char address[128];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(address, sizeof(address), "unix:%s/%s", bench_folder, SOCKET_NAME);
	(void)execlp(PROGRAM, PROGRAM, "-b", bench_folder, "-f", "0", "-l", address, (char *)NULL);
	_exit(127);
}

/* Connects this thread to the server. Returns false if no server listens. */
static bool try_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", bench_folder,
	               SOCKET_NAME);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		connection = fdopen(fd, "r");
	if (!connection && fd >= 0)
		(void)close(fd);
	return connection != NULL;
}

static void beanstalkd_open(const struct subject_setup *setup)
{
	const struct timespec pause = timespec_of(LOOK_NS);
	uint64_t start_ns = clock_monotonic_ns();

	(void)setup;
	server = fork();
	if (server == 0)
		be_server();
	while (!try_connect()) {
		if (clock_monotonic_ns() - start_ns > STARTS_WITHIN_NS ||
		    waitpid(server, NULL, WNOHANG) != 0)
			subject_fail("starting " PROGRAM, 0);
		(void)nanosleep(&pause, NULL);
	}
}

/* Reads a line of the server, which must begin with `expected`. */
static int read_line(char line[64], const char *expected)
{
	return fgets(line, 64, connection) && strncmp(line, expected, strlen(expected)) == 0 ? 0
	                                                                                     : -EIO;
}

/* Sends a put: "put PRIORITY DELAY TIME-TO-RUN BYTES". beanstalkd has delays of whole seconds. */
static int beanstalkd_arm(uint32_t timer, uint64_t delay_ns)
{
	char line[64];

	(void)timer;
	if (!connection && !try_connect())
		return -ECONNREFUSED;
	if (dprintf(fileno(connection), "put 0 %" PRIu64 " 60 %d\r\n%0*d\r\n", delay_ns / NS_PER_S,
	            DURABLE_BYTES, DURABLE_BYTES, 0) < 0)
		return -EIO;
	return read_line(line, "INSERTED ");
}

static int beanstalkd_finish(void)
{
	char line[64], data[DURABLE_BYTES + 2];
	unsigned long long job;

	if (dprintf(fileno(connection), "reserve\r\n") < 0 || read_line(line, "RESERVED ") < 0 ||
	    sscanf(line, "RESERVED %llu", &job) != 1 ||
	    fread(data, 1, sizeof(data), connection) != sizeof(data) ||
	    dprintf(fileno(connection), "delete %llu\r\n", job) < 0)
		return -EIO;
	return read_line(line, "DELETED");
}

SUBJECT(beanstalkd, "beanstalkd", DURABLE | FINISHES | CROSS, .open = beanstalkd_open,
        .arm = beanstalkd_arm, .finish = beanstalkd_finish)
