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
	struct address server; /* the server that the connection leads to */
	struct link link;
	bool reading; /* an XREADGROUP is in flight */
};

void taker_init(struct taker *taker, struct client *client, uint64_t seed);

/* Send an XREADGROUP to the server `server` if takers wait. Returns when to call again. */
uint64_t taker_pass(struct taker *taker, const struct address *server, uint64_t now_ns);

/*
 * Read replies. If the call returns an error, the caller must close the connection; after -EROFS,
 * all connections.
 */
int taker_read(struct taker *taker, uint64_t now_ns);

/* Close the connection. Returns whether deliveries may be lost with it. */
bool taker_lose(struct taker *taker, int why, uint64_t now_ns);

#endif
