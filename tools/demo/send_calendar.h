/* SPDX-License-Identifier: MIT */
/*
 * The calendar stores the time of each client's next heartbeat, in slots of a millisecond. Each
 * slot has a list of clients. The calendar is independent of timerhub, the tested code. A heartbeat
 * may be sent a little early or late. The load generator checks the server with the real times of
 * the heartbeats.
 */
#ifndef DEMO_SEND_CALENDAR_H
#define DEMO_SEND_CALENDAR_H

#include <stdint.h>

#define CALENDAR_NONE UINT32_MAX

struct calendar {
	uint32_t *heads;    /* first client of each slot, or CALENDAR_NONE */
	uint32_t *nexts;    /* for each client: the next client in the same slot */
	uint32_t slots;     /* number of slots, each of a millisecond */
	uint64_t cursor_ms; /* all slots before this time are empty */
};

/* Open a calendar for `clients` clients and delays below `reach_ns`. Returns 0 or -ENOMEM. */
int calendar_init(struct calendar *calendar, uint32_t clients, uint64_t reach_ns, uint64_t now_ns);

void calendar_fini(struct calendar *calendar);

/* Insert `client`, which must not be in the calendar, with its next heartbeat at due_ns. */
void calendar_insert(struct calendar *calendar, uint32_t client, uint64_t due_ns);

/* Remove and return one client whose heartbeat is due at now_ns, or return CALENDAR_NONE. */
uint32_t calendar_take(struct calendar *calendar, uint64_t now_ns);

#endif
