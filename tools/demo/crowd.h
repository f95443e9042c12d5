/* SPDX-License-Identifier: MIT */
/*
 * The clients of the heartbeat server: connects them, sends their heartbeats at random intervals,
 * lets a tenth fall silent at random moments, and judges every connection that the server closes.
 */
#ifndef DEMO_CROWD_H
#define DEMO_CROWD_H

#include "calendar.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Instants are those of CLOCK_MONOTONIC, which the server reads too. */
struct crowd_plan {
	uint32_t clients;
	uint16_t port;         /* of the server, on 127.0.0.1 */
	uint64_t seed;         /* of all that is random here */
	uint64_t idle_ns;      /* after so much silence the server is to close */
	uint64_t grace_ns;     /* a close later than this after its time counts as missed */
	uint64_t start_ns;     /* when the first client connects */
	uint64_t ramp_ns;      /* all clients have connected this much later */
	uint64_t silent_by_ns; /* a client that falls silent does so before this instant */
};

struct crowd_tally {
	uint32_t connected;        /* connections begun */
	uint32_t refused;          /* clients that got no socket or could not connect */
	int refused_error;         /* errno of the last of them */
	uint32_t open;             /* connections open now */
	uint64_t heartbeats;       /* sent */
	uint32_t silent;           /* clients that fell silent */
	uint32_t closed_silent;    /* of these, closed at the right time */
	uint32_t closed_wrongly;   /* closed too early, or without a reason */
	uint32_t closed_our_pause; /* closed rightly, but it was this process that had stalled */
	uint32_t missed;           /* silent, and not closed within grace_ns after the timeout */
	uint64_t *lateness_ns;     /* server's closing instant - deadline, of every right close */
	uint32_t lateness_count;
};

struct client {
	int fd;                    /* -1: not connected, or closed */
	bool silent;               /* sends no more */
	uint64_t silent_from_ns;   /* the first heartbeat due after this is not sent; 0: never */
	uint64_t previous_sent_ns; /* the heartbeat before the last */
	uint64_t last_sent_ns;     /* read just before send(); at first, the instant of connect() */
	uint64_t last_gone_ns;     /* read just after it: by then it was with the server */
	uint64_t deadline_ns;      /* from the server's farewell; 0: none came */
	uint64_t closed_ns;        /* likewise */
};

struct crowd {
	struct crowd_plan plan;
	struct crowd_tally tally;
	struct calendar calendar;
	struct client *clients;
	uint32_t begun;  /* clients that have tried to connect */
	int epoll_fd;    /* the caller's; an event's data is the client's index */
	uint64_t random; /* state of the generator */
};

/* Returns 0 or -ENOMEM. Then crowd_close() is due either way. */
int crowd_open(struct crowd *crowd, const struct crowd_plan *plan, int epoll_fd);

void crowd_close(struct crowd *crowd);

/* Connect and send what is due at `now_ns`. */
void crowd_advance(struct crowd *crowd, uint64_t now_ns);

/* Client `index` is readable: the server's farewell, or the end of the connection. */
void crowd_hear(struct crowd *crowd, uint64_t index);

/* How many silent clients still wait to be closed; once their time is over they are missed. */
uint32_t crowd_waiting(const struct crowd *crowd, uint64_t now_ns);

/* Count those that were never closed though their time is over. Nothing is judged after this. */
void crowd_finish(struct crowd *crowd, uint64_t now_ns);

#endif
