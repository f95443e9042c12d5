/* SPDX-License-Identifier: MIT */
/*
 * One connection of a shard, with an exponential back-off. One thread. Tested by
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
	uint64_t round_ns;     /* a round trip to this server, if one is known */
	/* State of the random generator that spreads the reconnections of different relays. */
	uint64_t random;
};

/*
 * How long to wait for a reply: 1 s and four round trips, more after failures, but at most a
 * quarter of a call's `timeout_ns` if that is more.
 */
uint64_t link_step_ns(const struct link *link, uint64_t timeout_ns);

void link_init(struct link *link, uint64_t seed);

/* Returns true if there is no connection and the back-off has ended. */
bool link_is_due(const struct link *link, uint64_t now_ns);

/* Store a connection in the link. link_lose() closes the connection. */
void link_set(struct link *link, struct wire *wire);

void link_close(struct link *link); /* its connection, if there is one */

/* link_close() and link_back_off(). */
void link_lose(struct link *link, int error, uint64_t now_ns);

/*
 * Doubles the wait from 10 ms to 5 s. For -ECONNREFUSED and -EROFS the longest wait is 400 ms,
 * because such a try costs little, and -EROFS ends with a failover or when a slot has moved.
 */
void link_back_off(struct link *link, int error, uint64_t now_ns);

#endif
