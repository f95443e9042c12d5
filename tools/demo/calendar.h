/* SPDX-License-Identifier: MIT */
/*
 * Which client is to send its next heartbeat when: slots of a millisecond, each a list of clients.
 * Deliberately not timerhub: the judge must not depend on what it judges. Being a little early or
 * late does no harm here, the verdict goes by the instants at which heartbeats were really sent.
 */
#ifndef DEMO_CALENDAR_H
#define DEMO_CALENDAR_H

#include <stdint.h>

#define CALENDAR_NONE UINT32_MAX

struct calendar {
	uint32_t *heads;    /* per slot: the first client, or CALENDAR_NONE */
	uint32_t *nexts;    /* per client: the next in its slot */
	uint32_t slots;     /* how many milliseconds ahead it reaches */
	uint64_t cursor_ms; /* every slot before it has been taken */
};

/* For `clients` clients and delays below `reach_ns`. Returns 0 or -ENOMEM. */
int calendar_init(struct calendar *calendar, uint32_t clients, uint64_t reach_ns, uint64_t now_ns);

void calendar_fini(struct calendar *calendar);

/* `client` must not be in the calendar. */
void calendar_insert(struct calendar *calendar, uint32_t client, uint64_t due_ns);

/* Takes one client that is due, or returns CALENDAR_NONE. */
uint32_t calendar_take(struct calendar *calendar, uint64_t now_ns);

#endif
