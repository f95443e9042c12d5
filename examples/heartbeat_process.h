/* SPDX-License-Identifier: MIT */
/*
 * What any server needs, such as options, signals and a listener, so that heartbeat_server.c is
 * about timers alone.
 */
#ifndef HEARTBEAT_PROCESS_H
#define HEARTBEAT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Where in an iteration of the event loop the timeouts expire. */
enum order { BEFORE, AFTER, ONE };

struct options {
	uint16_t port;    /* port of the listener, or 0 for a free port that the kernel picks */
	uint64_t idle_ns; /* time without a message after which a connection is closed */
	/* interval between two status lines; 0: no status line, only a report at the end */
	uint64_t status_ns;
	enum order order;
};

struct figures {
	uint64_t accepted;    /* number of accepted connections */
	uint64_t live;        /* number of open connections */
	uint64_t messages;    /* number of messages that the server has read */
	uint64_t closed_idle; /* number of connections that a timeout closed */
	/* number of connections that the peer closed or that ended by an error */
	uint64_t closed_peer;
	uint64_t wakes;        /* number of times that the loop's descriptor was readable */
	uint64_t turns_ns;     /* time spent in timerhub_loop_turn(), with its callbacks */
	uint64_t callbacks_ns; /* time spent in the timeout callbacks of connections */
};

struct process {
	uint32_t fds_max; /* a number larger than every descriptor */
	int epoll_fd;     /* the epoll instance, which watches listen_fd and signal_fd */
	int listen_fd;    /* the listening socket. Each descriptor is -1 while it is not open. */
	int signal_fd;    /* a signalfd, readable after SIGINT or SIGTERM */
};

/* Reads the options of the command line. If an option is wrong, exits. */
struct options process_options(int argc, char **argv);

/*
 * Opens the descriptors of `process`. Returns 0, or prints the error and returns -1. After both the
 * caller has to call process_close().
 */
int process_open(struct process *process, const struct options *options);
void process_close(struct process *process);

int process_watch(const struct process *process, int op, int fd, uint32_t events);

/*
 * Returns the descriptor of the next connection, or -EAGAIN if none waits, or -EMFILE if the
 * process may open no more. In that case it also stops watching the listener, which would stay
 * readable and make the loop spin; process_listen() watches it again.
 */
int process_accept(const struct process *process);

/* Begins or ends to watch the listener. */
int process_listen(const struct process *process, bool watch);

/* Returns the time on CLOCK_MONOTONIC, in ns. */
uint64_t process_now_ns(void);

/* Prints the port of the listener, which the process that has started this one reads. */
int process_announce(const struct process *process);

/*
 * Prints a line with all counters. It begins with `kind`, which is "status" or "report".
 */
int process_report(const char *kind, const struct figures *figures);

/* Prints that `what` has failed with `error`, an errno or a negative one. Returns -1. */
int process_failed(const char *what, int error);

#endif
