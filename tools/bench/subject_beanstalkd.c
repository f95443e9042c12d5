/* SPDX-License-Identifier: MIT */
/*
 * beanstalkd with its log synced at every put (-f 0), a process of its own, found when the
 * benchmark runs. A connection to its Unix socket for each thread, which is the cheapest it offers.
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
#include "folder.h"
#include "subject_list.h"

#define PROGRAM "beanstalkd"
#define SOCKET_NAME "socket"
#define LOOK_NS (5 * NS_PER_MS)
#define STARTS_WITHIN_NS (10 * NS_PER_SECOND)

static const char *folder;
static pid_t server;
static _Thread_local int connection = -1;

/* Debian keeps it where only root's path leads. */
static bool there(void)
{
	static const char *const places[] = { "/usr/bin/" PROGRAM, "/usr/sbin/" PROGRAM,
		                              "/usr/local/bin/" PROGRAM };

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], X_OK) == 0)
			return true;
	return false;
}

__attribute__((noreturn)) static void be_server(void)
{
	char address[128];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(address, sizeof(address), "unix:%s/%s", folder, SOCKET_NAME);
	(void)setenv("PATH", "/usr/bin:/usr/sbin:/usr/local/bin", 1);
	(void)execlp(PROGRAM, PROGRAM, "-b", folder, "-f", "0", "-l", address, (char *)NULL);
	_exit(127);
}

/* Returns a negative number if no server listens. */
static int try_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, SOCKET_NAME);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void beanstalkd_open(const struct subject_setup *setup)
{
	uint64_t start_ns = now_ns();

	(void)setup;
	folder = folder_make();
	server = fork();
	if (server == 0)
		be_server();
	while ((connection = try_connect()) < 0) {
		if (now_ns() - start_ns > STARTS_WITHIN_NS || waitpid(server, NULL, WNOHANG) != 0)
			subject_fail("starting " PROGRAM, 0);
		sleep_until_ns(now_ns() + LOOK_NS);
	}
}

static int ask(const char *request, size_t bytes)
{
	char answer[64];
	ssize_t got;

	if (write(connection, request, bytes) != (ssize_t)bytes)
		return -EIO;
	got = read(connection, answer, sizeof(answer));
	return got > 2 && answer[got - 1] == '\n' && strncmp(answer, "INSERTED ", 9) == 0 ? 0
	                                                                                  : -EIO;
}

/* put PRIORITY DELAY TIME-TO-RUN BYTES; delays are whole seconds. */
static int beanstalkd_arm(uint32_t timer, uint64_t delay_ns)
{
	char request[64 + DURABLE_BYTES + 2];
	int head = snprintf(request, sizeof(request), "put 0 %llu 60 %d\r\n",
	                    delay_ns / NS_PER_SECOND, DURABLE_BYTES);
	size_t bytes = (size_t)head + DURABLE_BYTES + 2;

	(void)timer;
	if (connection < 0)
		connection = try_connect();
	memset(request + head, 'o', DURABLE_BYTES);
	memcpy(request + bytes - 2, "\r\n", 2);
	return connection < 0 ? -ECONNREFUSED : ask(request, bytes);
}

static void beanstalkd_counts(struct subject_counts *ret_counts)
{
	clockid_t clock;

	*ret_counts = (struct subject_counts){ 0 };
	if (clock_getcpuclockid(server, &clock) == 0)
		ret_counts->other_cpu_ns = clock_read_ns(clock);
}

static void beanstalkd_close(void)
{
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
}

const struct subject subject_beanstalkd = {
	.name = "beanstalkd",
	.how = "put, with -f 0, a Unix connection for each thread",
	.can = CAN_PUT_DURABLY | CAN_ANY_THREAD | CAN_CROSS,
	.there = there,
	.open = beanstalkd_open,
	.close = beanstalkd_close,
	.arm = beanstalkd_arm,
	.counts = beanstalkd_counts,
};
