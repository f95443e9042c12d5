/* SPDX-License-Identifier: MIT */
/*
 * What the heartbeat server needs besides its timers, as any server does: options, a limit of
 * files, signals, a listener, an epoll; and the lines in which it says how it goes.
 */
#ifndef HEARTBEAT_PROCESS_H
#define HEARTBEAT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
	uint16_t port;      /* 0: any */
	uint64_t idle_ns;   /* how long a connection may be silent */
	uint64_t status_ns; /* how often to print figures; 0: at the end only */
};

struct figures {
	uint64_t accepted;
	uint64_t live;
	uint64_t messages;
	uint64_t closed_idle;  /* by a timeout */
	uint64_t closed_peer;  /* by the other side, or by an error */
	uint64_t wakes;        /* times that a timeout ended the loop's wait */
	uint64_t turns_ns;     /* in timerhub_loop_turn(), with callbacks */
	uint64_t callbacks_ns; /* in callbacks of connections */
};

struct process {
	uint32_t fds_max; /* every fd is below it */
	int epoll_fd;     /* knows the two below */
	int listen_fd;    /* -1: not open; likewise the others */
	int signal_fd;
};

/* Exits if they make no sense. */
struct options process_options(int argc, char **argv);

/* 0 or -1, having said what failed. process_close() is due either way. */
int process_open(struct process *process, const struct options *options);
void process_close(struct process *process);

int process_watch(const struct process *process, int op, int fd, uint32_t events);

/*
 * Returns the fd of the next connection, or -EAGAIN: none waits. -EMFILE: there is no fd to spare,
 * and the listener would keep the loop spinning. It is not watched until process_listen().
 */
int process_accept(const struct process *process);

/* Watches the listener, or looks away. */
int process_listen(const struct process *process, bool watch);

/* Returns CLOCK_MONOTONIC. */
uint64_t process_now_ns(void);

/* Prints the port at which it listens, for the program that started us. */
int process_announce(const struct process *process);

/* Prints a line of figures: "status ..." or "report ...". */
int process_report(const char *kind, const struct figures *figures);

/* Says what failed, by an errno or its negative; returns -1. */
int process_failed(const char *what, int error);

#endif
