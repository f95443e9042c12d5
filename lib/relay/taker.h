/* SPDX-License-Identifier: MIT */
/*
 * Reads tasks for waiting takers, by a blocking XREADGROUP on a connection of its own. Only the
 * shard's thread calls.
 */
#ifndef RELAY_TAKER_H
#define RELAY_TAKER_H

#include "relay/link.h"
#include "relay/request.h"

struct taker {
	struct client *client;
	struct address server; /* address of the connected server */
	struct link link;
	bool reading; /* an XREADGROUP is in flight */
};

void taker_init(struct taker *taker, struct client *client, uint64_t seed);

/*
 * Send an XREADGROUP to the server `server` if takers wait. Returns the time by which this function
 * must be called again.
 */
uint64_t taker_pass(struct taker *taker, const struct address *server, uint64_t now_ns);

/*
 * Read the replies on the takers' connection. If the call returns an error, the caller must close
 * the connection; after -EROFS, all connections.
 */
int taker_read(struct taker *taker, uint64_t now_ns);

/* Close the connection. Returns whether deliveries may be lost with it. */
bool taker_lose(struct taker *taker, int why, uint64_t now_ns);

#endif
