/* SPDX-License-Identifier: MIT */
/*
 * Keeps one connection of a shard (a wire of wire.h). After failures the times of the reconnections
 * follow an exponential back-off. Only one thread uses a link. The back-off is tested by
 * tests/relay/test_parts.c.
 */
#ifndef RELAY_LINK_H
#define RELAY_LINK_H

#include "relay/wire.h"

#define LINK_NEVER UINT64_MAX

struct link {
	struct wire *wire; /* the connection, or NULL if not connected */
	uint64_t retry_ns; /* earliest time of the next attempt to connect */
	/* Longest wait before the next attempt to connect; 0: no failure since the last reply. */
	uint64_t backoff_ns;
	uint64_t answer_by_ns; /* deadline of the next reply, or LINK_NEVER if none is awaited */
	/* State of the random generator that spreads the reconnections of different relays. */
	uint64_t random;
};

/*
 * Returns the timeout of each reply of the next handshake: 1 s, and more after failures, since the
 * way may be long, but at most a quarter of `timeout_ns`, the timeout of a call, if that is more.
 */
uint64_t link_step_ns(const struct link *link, uint64_t timeout_ns);

void link_init(struct link *link, uint64_t seed);

/* Returns true if there is no connection and the back-off has ended. */
bool link_is_due(const struct link *link, uint64_t now_ns);

/* Store a connection in the link. link_lose() closes the connection. */
void link_set(struct link *link, struct wire *wire);

/* Close the link's connection, if there is one, and call link_back_off(). */
void link_lose(struct link *link, int error, uint64_t now_ns);

/*
 * Set the time of the next attempt to connect, after a failure with `error`. The wait doubles with
 * each failure, from 10 ms to 5 s. If `error` is -ECONNREFUSED, the wait is at most 400 ms. A
 * refused attempt costs little.
 */
void link_back_off(struct link *link, int error, uint64_t now_ns);

#endif
