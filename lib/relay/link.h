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
	 * The longest wait before the next attempt to connect; 0 if the server has answered since
	 * the last failure.
	 */
	uint64_t backoff_ns;
	uint64_t answer_by_ns; /* deadline of the next reply, or LINK_NEVER if none is awaited */
	uint64_t round_ns;     /* a round trip to this server, if one is known */
	/* The state of the random generator that spreads the reconnects of many relays. */
	uint64_t random;
};

/*
 * Returns how long to wait for a reply in a handshake. This grows with each failure and with the
 * network's round trip, up to a quarter of `timeout_ns`, but it is at least 1 s.
 */
uint64_t link_step_ns(const struct link *link, uint64_t timeout_ns);

void link_init(struct link *link, uint64_t seed);

/* Returns true if there is no connection and it is time for the next attempt. */
bool link_is_due(const struct link *link, uint64_t now_ns);

/* Stores an open connection in `link`, until link_close() or link_lose() closes it. */
void link_set(struct link *link, struct wire *wire);

void link_close(struct link *link); /* Closes the connection of the link, if there is one. */

/* Closes the connection, and sets the time of the next attempt to connect. */
void link_lose(struct link *link, int error, uint64_t now_ns);

/*
 * Sets the time of the next attempt to connect. The wait doubles with each failure, up to 5 s.
 * After -ECONNREFUSED it stays below 400 ms, because such an attempt is cheap, and after -EROFS
 * too, because a failover is soon over.
 */
void link_back_off(struct link *link, int error, uint64_t now_ns);

#endif
