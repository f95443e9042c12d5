/* SPDX-License-Identifier: MIT */
/*
 * Stores the time of each client's next heartbeat, in slots of a millisecond. Each slot has a list
 * of clients. The calendar does not use timerhub, because a test must not depend on the tested
 * code. A heartbeat that is a little early or late does no harm, since the result uses the time of
 * the real send.
 */
#ifndef DEMO_HEARTBEAT_TIMES_H
#define DEMO_HEARTBEAT_TIMES_H

#include <stdint.h>

#define CALENDAR_NONE UINT32_MAX

struct calendar {
	uint32_t *heads;    /* the first client of each slot, or CALENDAR_NONE */
	uint32_t *nexts;    /* for each client: the next client in its slot */
	uint32_t slots;     /* length of the calendar in milliseconds */
	uint64_t cursor_ms; /* all slots before the cursor are empty */
};

/* Opens a calendar for `clients` clients and delays below `reach_ns`. Returns 0 or -ENOMEM. */
int calendar_init(struct calendar *calendar, uint32_t clients, uint64_t reach_ns, uint64_t now_ns);

void calendar_fini(struct calendar *calendar);

/* Inserts `client`, which must not be in the calendar. */
void calendar_insert(struct calendar *calendar, uint32_t client, uint64_t due_ns);

/* Takes one client that is due, or returns CALENDAR_NONE. */
uint32_t calendar_take(struct calendar *calendar, uint64_t now_ns);

#endif
