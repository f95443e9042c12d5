/* SPDX-License-Identifier: MIT */
/* The server under load is a child process that prints its figures on a pipe. */
#ifndef DEMO_SERVER_PROCESS_H
#define DEMO_SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The server's figures; examples/heartbeat_process.h explains them. */
struct server_figures {
	uint64_t now_ns; /* time at which the server read its figures, or 0 without figures */
	uint64_t accepted;
	uint64_t live;
	uint64_t messages;
	uint64_t closed_idle;
	uint64_t closed_peer;
	uint64_t wakes;
	uint64_t loop_ns; /* time in timerhub_loop_turn(), without the callbacks of timers */
};

struct server_process {
	pid_t pid;                  /* process id of the server, or 0 before the start */
	int pipe_fd;                /* pipe from the server's standard output, or -1 */
	uint16_t port;              /* port on which the server listens */
	bool ended;                 /* the server has closed its end of the pipe */
	struct server_figures last; /* figures of the newest line of the server's output */
	char text[1024];            /* incomplete last line of the server's output */
	uint32_t text_bytes;
};

/*
 * Start the server `argv` and wait until it listens. Returns 0 or a negative errno. -EPROTO means
 * that the server ended or printed an unknown line. Call server_close() also after an error.
 */
int server_start(struct server_process *server, char **argv);

/* Read the server's output. Call this function when the pipe is readable. */
void server_hear(struct server_process *server);

/*
 * Tell the server to end, and read its output up to the final report. Returns 0, or -EPROTO if the
 * server ended without a final report or by an error.
 */
int server_stop(struct server_process *server);

void server_close(struct server_process *server);

#endif
