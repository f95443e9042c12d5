/* SPDX-License-Identifier: MIT */
/*
 * The parts of the heartbeat server that any server needs: options, a limit of descriptors,
 * signals, a listener, an epoll, and lines of figures.
 */
#ifndef HEARTBEAT_PROCESS_H
#define HEARTBEAT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
	uint16_t port;      /* port of the listener; 0: any */
	uint64_t idle_ns;   /* permitted silence of a connection */
	uint64_t status_ns; /* interval between printed figures; 0: print at the end only */
};

struct figures {
	uint64_t accepted;
	uint64_t live;
	uint64_t messages;
	uint64_t closed_idle;  /* number of connections that a timeout closed */
	uint64_t closed_peer;  /* number of connections closed by the peer or after an error */
	uint64_t wakes;        /* how often a timeout ended the loop's wait */
	uint64_t turns_ns;     /* time in timerhub_loop_turn(), with callbacks */
	uint64_t callbacks_ns; /* time in callbacks of connections */
};

struct process {
	uint32_t fds_max; /* a number larger than every descriptor */
	int epoll_fd;     /* has the next two descriptors */
	int listen_fd;    /* the listener; -1: not open, as for the other descriptors */
	int signal_fd;
};

/* Exits if an option is wrong. */
struct options process_options(int argc, char **argv);

/* Returns 0, or prints the error and returns -1. In both cases call process_close() afterwards. */
int process_open(struct process *process, const struct options *options);
void process_close(struct process *process);

int process_watch(const struct process *process, int op, int fd, uint32_t events);

/*
 * Returns the descriptor of the next connection, or -EAGAIN if none waits. -EMFILE: no descriptor
 * is left. Then the listener is not watched until process_listen(), since it would stay readable
 * and make the loop spin.
 */
int process_accept(const struct process *process);

/* Watches the listener, or stops watching it. */
int process_listen(const struct process *process, bool watch);

/* Returns CLOCK_MONOTONIC. */
uint64_t process_now_ns(void);

/* Prints the port of the listener, for the parent process. */
int process_announce(const struct process *process);

/* Prints a line of figures: "status ..." or "report ...". */
int process_report(const char *kind, const struct figures *figures);

/* Prints that the step `what` failed, with the errno `error` or -errno. Returns -1. */
int process_failed(const char *what, int error);

#endif
