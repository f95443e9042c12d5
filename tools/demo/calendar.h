/* SPDX-License-Identifier: MIT */
/*
 * The time of each client's next heartbeat: slots of a millisecond, each with a list of clients. It
 * does not use timerhub, because a test must not depend on the tested code. A heartbeat that is a
 * little early or late does no harm, since the result uses the time of the real send.
 */
#ifndef DEMO_CALENDAR_H
#define DEMO_CALENDAR_H

#include <stdint.h>

#define CALENDAR_NONE UINT32_MAX

struct calendar {
	uint32_t *heads;    /* per slot: the first client, or CALENDAR_NONE */
	uint32_t *nexts;    /* per client: the next in its slot */
	uint32_t slots;     /* length of the calendar in milliseconds */
	uint64_t cursor_ms; /* all slots before it are empty */
};

/* For `clients` clients and delays below `reach_ns`. Returns 0 or -ENOMEM. */
int calendar_init(struct calendar *calendar, uint32_t clients, uint64_t reach_ns, uint64_t now_ns);

void calendar_fini(struct calendar *calendar);

/* `client` must not be in the calendar. */
void calendar_insert(struct calendar *calendar, uint32_t client, uint64_t due_ns);

/* Takes one client that is due, or returns CALENDAR_NONE. */
uint32_t calendar_take(struct calendar *calendar, uint64_t now_ns);

#endif
