/* SPDX-License-Identifier: MIT */
/*
 * The connection on which a shard reads deliveries for waiting takers, by an XREADGROUP that
 * blocks. Only the shard's thread uses it.
 */
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

/*
 * If callers wait for tasks, or an event loop waits on the descriptor, asks the server for some, by
 * an XREADGROUP that blocks. Returns when takers_pass() must be called again.
 */
uint64_t takers_pass(struct takers_connection *takers, const struct address *server,
                     uint64_t now_ns);

/*
 * Reads tasks that the server has sent. After an error the caller must close this connection, and
 * after -EROFS (a replica, or a deleted queue) all connections to the server.
 */
int takers_read(struct takers_connection *takers, uint64_t now_ns);

/*
 * Closes the connection. Returns true if a read was in flight, so that tasks may be lost with it.
 */
bool takers_lose(struct takers_connection *takers, int why, uint64_t now_ns);

#endif
