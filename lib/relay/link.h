/* SPDX-License-Identifier: MIT */
/*
 * One connection of a shard, which is opened again after an exponential back-off. Only one thread
 * uses a link. Tested by tests/relay/test_parts.c.
 */
#ifndef RELAY_LINK_H
#define RELAY_LINK_H

#include "relay/wire.h"

#define LINK_NEVER UINT64_MAX

struct link {
	struct wire *wire; /* the connection, or NULL if not connected */
	uint64_t retry_ns; /* earliest time of the next attempt to connect */
	/*
	 * How long to wait at most before the next attempt to connect; 0 if there was no failure
	 * since the last reply.
	 */
	uint64_t backoff_ns;
	uint64_t answer_by_ns; /* deadline of the next reply, or LINK_NEVER if none is awaited */
	uint64_t round_ns;     /* a round trip to this server, if one is known */
	/* State of the random generator that spreads the reconnections of different relays. */
	uint64_t random;
};

/*
 * Returns how long to wait for a reply: 1 s and four round trips, and more after failures, but at
 * most a quarter of a call's `timeout_ns`, and never less than 1 s.
 */
uint64_t link_step_ns(const struct link *link, uint64_t timeout_ns);

void link_init(struct link *link, uint64_t seed);

/* Returns true if there is no connection and the back-off has ended. */
bool link_is_due(const struct link *link, uint64_t now_ns);

/* Stores a connection in the link, which link_lose() closes. */
void link_set(struct link *link, struct wire *wire);

void link_close(struct link *link); /* Closes the connection of the link, if there is one. */

/* Closes the connection, and begins or lengthens the back-off. */
void link_lose(struct link *link, int error, uint64_t now_ns);

/*
 * Doubles the wait before the next attempt, from 10 ms up to 5 s. For -ECONNREFUSED and -EROFS the
 * longest wait is 400 ms, because such a try costs little, and -EROFS ends with a failover or when
 * a slot has moved.
 */
void link_back_off(struct link *link, int error, uint64_t now_ns);

#endif
