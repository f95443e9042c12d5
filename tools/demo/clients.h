/* SPDX-License-Identifier: MIT */
/*
 * The clients of the heartbeat server. The clients connect, send heartbeats at random intervals,
 * and a tenth of them falls silent at random times. For each close by the server, the crowd decides
 * whether it was right.
 */
#ifndef DEMO_CLIENTS_H
#define DEMO_CLIENTS_H

#include "heartbeat_times.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* All times are of CLOCK_MONOTONIC, which the server reads too. */
struct crowd_plan {
	uint32_t clients;
	uint16_t port;         /* the server's port on 127.0.0.1 */
	uint64_t seed;         /* seed of all random choices */
	uint64_t idle_ns;      /* a client silent for this long must be closed */
	uint64_t grace_ns;     /* a close that is later by more is counted as missed */
	uint64_t start_ns;     /* time at which the first client connects */
	uint64_t ramp_ns;      /* duration until all clients have connected */
	uint64_t silent_by_ns; /* clients fall silent before this time */
};

struct crowd_tally {
	uint32_t connected;        /* number of connections begun */
	uint32_t refused;          /* clients without a socket, or whose connect failed */
	int refused_error;         /* errno of the last failure */
	uint32_t open;             /* number of connections open now */
	uint64_t heartbeats;       /* number of heartbeats sent */
	uint32_t silent;           /* clients that fell silent */
	uint32_t closed_silent;    /* silent clients closed at the right time */
	uint32_t closed_wrongly;   /* closed too early, or without a reason */
	uint32_t closed_our_pause; /* closed rightly after this process had stalled */
	uint32_t missed;           /* silent clients not closed within grace_ns after the timeout */
	uint64_t *lateness_ns;     /* server's close - deadline, for every right close */
	uint32_t lateness_count;
};

struct client {
	int fd;                    /* -1: not connected, or closed */
	bool silent;               /* the client sends no heartbeats */
	uint64_t silent_from_ns;   /* heartbeats due after this are not sent; 0: all are sent */
	uint64_t previous_sent_ns; /* time of the heartbeat before the last */
	uint64_t last_sent_ns;     /* read just before send(); at first, the time of connect() */
	uint64_t last_gone_ns;     /* read just after send(), when the server had the heartbeat */
	uint64_t deadline_ns;      /* deadline in the server's last message; 0: no message */
	uint64_t closed_ns;        /* time of the close in the server's last message */
};

struct crowd {
	struct crowd_plan plan;
	struct crowd_tally tally;
	struct calendar calendar;
	struct client *clients;
	uint32_t begun;  /* clients that have tried to connect */
	int epoll_fd;    /* epoll of the caller; an event's data is the client's index */
	uint64_t random; /* state of the generator */
};

/* Returns 0 or -ENOMEM. In both cases call crowd_close() afterwards. */
int crowd_open(struct crowd *crowd, const struct crowd_plan *plan, int epoll_fd);

void crowd_close(struct crowd *crowd);

/* Make the connections and send the heartbeats that are due at `now_ns`. */
void crowd_advance(struct crowd *crowd, uint64_t now_ns);

/* Read from client `index`, which has the server's last message or the end of the connection. */
void crowd_hear(struct crowd *crowd, uint64_t index);

/*
 * Returns the number of silent clients that are not closed yet. Clients that are not closed in time
 * count as missed.
 */
uint32_t crowd_waiting(const struct crowd *crowd, uint64_t now_ns);

/* Count the silent clients that were not closed in time. No close is judged after this. */
void crowd_finish(struct crowd *crowd, uint64_t now_ns);

#endif
