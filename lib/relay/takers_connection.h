/* SPDX-License-Identifier: MIT */
/* A blocking XREADGROUP for waiting takers. Only the shard's thread. */
#ifndef RELAY_TAKERS_CONNECTION_H
#define RELAY_TAKERS_CONNECTION_H

#include "relay/link.h"
#include "relay/request.h"

struct takers_connection {
	struct client *client;
	struct address server; /* address of the connected server */
	struct link link;
	bool reading;     /* an XREADGROUP is in flight */
	uint64_t sent_ns; /* when the last XREADGROUP was sent */
};

void takers_init(struct takers_connection *takers, struct client *client, uint64_t seed);

/* If takers wait, send an XREADGROUP to the server `server`. Returns when to call again. */
uint64_t takers_pass(struct takers_connection *takers, const struct address *server,
                     uint64_t now_ns);

/* After an error close this connection, after -EROFS all of the shard. */
int takers_read(struct takers_connection *takers, uint64_t now_ns);

/* Close the takers' connection. Returns whether deliveries may be lost with the connection. */
bool takers_lose(struct takers_connection *takers, int why, uint64_t now_ns);

#endif
