/* SPDX-License-Identifier: MIT */
/* A connection, or the wait for one. One thread. Tested by tests/relay/test_parts.c. */
#ifndef RELAY_LINK_H
#define RELAY_LINK_H

#include "wire.h"

#define LINK_NEVER UINT64_MAX

struct link {
	struct wire *wire;     /* NULL: there is none */
	uint64_t retry_ns;     /* not to be opened again before */
	uint64_t backoff_ns;   /* the longest wait after the last failure; 0: it has worked since */
	uint64_t answer_by_ns; /* lost if it has not answered by then; LINK_NEVER: it owes none */
};

/*
 * After a failure by `error`, set when to try again: the wait doubles with each failure, from 10 ms
 * to 5 s, or to 400 ms if the server's machine refuses the connection, which is soon answered and
 * cheap. `dice` is any number, by which relays that lose a server together spread.
 */
void link_back_off(struct link *link, int error, uint64_t dice, uint64_t now_ns);

#endif
