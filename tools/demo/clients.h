/* SPDX-License-Identifier: MIT */
/*
 * The clients of the heartbeat server. The clients connect and send heartbeats at random intervals.
 * A tenth of the clients falls silent at random times. For each connection that the server closes,
 * this file decides whether the server closed it correctly.
 */
#ifndef DEMO_CLIENTS_H
#define DEMO_CLIENTS_H

#include "send_calendar.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The parameters of the crowd. All times are of CLOCK_MONOTONIC. The server uses CLOCK_MONOTONIC
 * too.
 */
struct crowd_plan {
	uint32_t clients;
	uint16_t port;         /* the server's port on 127.0.0.1 */
	uint64_t seed;         /* seed of all random choices */
	uint64_t idle_ns;      /* the server must close a client that is silent for this time */
	uint64_t grace_ns;     /* a client must be closed within this time after its timeout */
	uint64_t start_ns;     /* time at which the first client connects */
	uint64_t ramp_ns;      /* duration until all clients have connected */
	uint64_t silent_by_ns; /* all silent clients fall silent before this time */
};

struct crowd_tally {
	uint32_t connected;        /* number of connections begun */
	uint32_t refused;          /* number of clients that could not connect */
	int refused_error;         /* errno of the last client that could not connect */
	uint32_t open;             /* number of connections open now */
	uint64_t heartbeats;       /* number of heartbeats sent */
	uint32_t silent;           /* number of clients that fell silent */
	uint32_t closed_silent;    /* number of silent clients closed on time */
	uint32_t closed_wrongly;   /* number of clients closed too early or without reason */
	uint32_t closed_our_pause; /* number of clients closed because this process stalled */
	uint32_t missed;       /* number of silent clients open for idle_ns + grace_ns or longer */
	uint64_t *lateness_ns; /* for each correctly closed client: time of close - deadline */
	uint32_t lateness_count;
};

struct client {
	int fd;                    /* socket, or -1 if the client is not connected or is closed */
	bool silent;               /* the client sends no heartbeats */
	uint64_t silent_from_ns;   /* time at which the client falls silent, or 0 if never */
	uint64_t previous_sent_ns; /* time of the second-last heartbeat */
	uint64_t last_sent_ns;     /* time just before the last send(), or before connect() */
	uint64_t last_gone_ns; /* time just after the last send(), when the server had its data */
	uint64_t deadline_ns;  /* deadline that the server's last message gives, or 0 */
	uint64_t closed_ns;    /* time of the close that the server's last message gives */
};

struct crowd {
	struct crowd_plan plan;
	struct crowd_tally tally;
	struct calendar calendar;
	struct client *clients;
	uint32_t begun;  /* number of clients that have tried to connect */
	int epoll_fd;    /* the caller's epoll descriptor; an event's data is the client's index */
	uint64_t random; /* state of the random generator */
};

/*
 * Prepare the clients of the plan, without connecting. Returns 0 or -ENOMEM. Call crowd_close()
 * also after -ENOMEM.
 */
int crowd_open(struct crowd *crowd, const struct crowd_plan *plan, int epoll_fd);

void crowd_close(struct crowd *crowd);

/* Begin the connections and send the heartbeats that are due at `now_ns`. */
void crowd_advance(struct crowd *crowd, uint64_t now_ns);

/*
 * Read the server's last message, or the end of the connection, from the socket of client `index`.
 */
void crowd_hear(struct crowd *crowd, uint64_t index);

/*
 * Returns the number of connected clients that are silent or will fall silent. If the timeout and
 * the grace time of a silent client have passed, the number does not include this client.
 */
uint32_t crowd_waiting(const struct crowd *crowd, uint64_t now_ns);

/*
 * Count the silent clients that the server did not close in time. Call this function after the last
 * call of crowd_hear().
 */
void crowd_finish(struct crowd *crowd, uint64_t now_ns);

#endif
