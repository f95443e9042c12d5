/* SPDX-License-Identifier: MIT */
/*
 * Runs the server under load as a child process. See server_process.h. The load generator's only
 * thread calls these functions. The functions read whole lines only. If the server prints an
 * unknown line, or no line for a long time, the server counts as broken.
 */
#include "server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

/*
 * Run the server in the child process. The server gets a process group of its own. Therefore Ctrl-C
 * reaches only the load generator, which then ends the server. If the load generator is killed, the
 * kernel ends the server.
 */
static void become_server(char **argv, int pipe_fd, pid_t parent)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(pipe_fd, STDOUT_FILENO) >= 0)
		execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

static uint64_t value_of(const char *line, const char *key)
{
	const char *found = strstr(line, key);

	return found != NULL ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static void take_figures(struct server_process *server, const char *line)
{
	struct server_figures *last = &server->last;

	last->now_ns = value_of(line, " now_ns=");
	last->accepted = value_of(line, " accepted=");
	last->live = value_of(line, " live=");
	last->messages = value_of(line, " messages=");
	last->closed_idle = value_of(line, " closed_idle=");
	last->closed_peer = value_of(line, " closed_peer=");
	last->wakes = value_of(line, " wakes=");
	last->loop_ns = value_of(line, " loop_ns=");
}

static void take_line(struct server_process *server, const char *line)
{
	const char *port = strstr(line, "127.0.0.1:");

	if (server->port == 0 && port != NULL)
		server->port = (uint16_t)strtoul(port + strlen("127.0.0.1:"), NULL, 10);
	else
		take_figures(server, line);
}

static void take_lines(struct server_process *server)
{
	char *end;

	while ((end = memchr(server->text, '\n', server->text_bytes)) != NULL) {
		const uint32_t line_bytes = (uint32_t)(end - server->text) + 1;
		*end = '\0';
		take_line(server, server->text);
		server->text_bytes -= line_bytes;
		memmove(server->text, end + 1, server->text_bytes);
	}
	if (server->text_bytes == sizeof(server->text))
		server->text_bytes = 0; /* too long for a line of the server, so drop the text */
}

void server_hear(struct server_process *server)
{
	const ssize_t n = read(server->pipe_fd, server->text + server->text_bytes,
	                       sizeof(server->text) - server->text_bytes);

	if (n > 0) {
		server->text_bytes += (uint32_t)n;
		take_lines(server);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		server->ended = true;
	}
}

/*
 * Wait until the server's pipe is readable. Returns 0, or -ETIMEDOUT if the server prints nothing
 * for a long time.
 */
static int wait_for_word(const struct server_process *server)
{
	struct pollfd pipe = { .fd = server->pipe_fd, .events = POLLIN };
	int r;

	do
		r = poll(&pipe, 1, PATIENCE_MS);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return r > 0 ? 0 : -ETIMEDOUT;
}

int server_start(struct server_process *server, char **argv)
{
	const pid_t self = getpid();
	int pipe_fds[2], r = 0;

	*server = (struct server_process){ .pipe_fd = -1 };
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	server->pipe_fd = pipe_fds[0];
	const pid_t pid = fork();
	if (pid < 0)
		r = -errno;
	else if (pid == 0)
		become_server(argv, pipe_fds[1], self);
	else
		server->pid = pid;
	close(pipe_fds[1]);
	while (r == 0 && server->port == 0) {
		r = wait_for_word(server);
		if (r == 0)
			server_hear(server);
		if (r == 0 && server->ended)
			r = -EPROTO;
	}
	return r;
}

/* Wait for the end of the server. Returns 0 if the server's exit status is 0. */
static int reap(struct server_process *server)
{
	int status = 0;
	pid_t r;

	do
		r = waitpid(server->pid, &status, 0);
	while (r < 0 && errno == EINTR);
	server->pid = 0;
	return r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPROTO;
}

int server_stop(struct server_process *server)
{
	int r = 0;

	kill(server->pid, SIGTERM);
	while (r == 0 && !server->ended) {
		r = wait_for_word(server);
		if (r == 0)
			server_hear(server);
	}
	return r == 0 ? reap(server) : r;
}

void server_close(struct server_process *server)
{
	if (server->pid > 0) {
		kill(server->pid, SIGKILL);
		reap(server);
	}
	if (server->pipe_fd >= 0)
		close(server->pipe_fd);
}
