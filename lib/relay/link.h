/* SPDX-License-Identifier: MIT */
/* A connection, or the wait for one. One thread. Tested by tests/relay/test_parts.c. */
#ifndef RELAY_LINK_H
#define RELAY_LINK_H

#include "relay/wire.h"

#define LINK_NEVER UINT64_MAX

struct link {
	struct wire *wire;     /* NULL: there is none */
	uint64_t retry_ns;     /* not to be opened again before */
	uint64_t backoff_ns;   /* the longest wait after the last failure; 0: it has worked since */
	uint64_t answer_by_ns; /* the deadline of a reply; LINK_NEVER: none is owed */
	uint64_t random;       /* spreads the retries of relays that lose a server together */
};

void link_init(struct link *link, uint64_t seed);

/* Returns whether there is no connection and the back-off is over. */
bool link_is_due(const struct link *link, uint64_t now_ns);

/* Set the connection, which link_lose() closes. */
void link_set(struct link *link, struct wire *wire);

/* Close it, if there is one, and back off. */
void link_lose(struct link *link, int error, uint64_t now_ns);

/*
 * After a failure by `error`, set when to try again: the wait doubles with each failure, from 10 ms
 * to 5 s, or to 400 ms if the server's machine refuses the connection, which is soon answered and
 * cheap.
 */
void link_back_off(struct link *link, int error, uint64_t now_ns);

#endif
