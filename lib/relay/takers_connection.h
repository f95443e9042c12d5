/* SPDX-License-Identifier: MIT */
/* A blocking XREADGROUP for waiting takers. Only the shard's thread. */
#ifndef RELAY_TAKERS_CONNECTION_H
#define RELAY_TAKERS_CONNECTION_H

#include "relay/link.h"
#include "relay/request.h"

struct taker {
	struct client *client;
	struct address server; /* address of the connected server */
	struct link link;
	bool reading;     /* an XREADGROUP is in flight */
	uint64_t sent_ns; /* when the last XREADGROUP was sent */
};

void taker_init(struct taker *taker, struct client *client, uint64_t seed);

/*
 * If takers wait, send an XREADGROUP to the server `server`. Returns the time by which taker_pass()
 * must be called again.
 */
uint64_t taker_pass(struct taker *taker, const struct address *server, uint64_t now_ns);

/* After an error close this connection, after -EROFS all of the shard. */
int taker_read(struct taker *taker, uint64_t now_ns);

/* Close the takers' connection. Returns whether deliveries may be lost with the connection. */
bool taker_lose(struct taker *taker, int why, uint64_t now_ns);

#endif
