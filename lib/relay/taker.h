/* SPDX-License-Identifier: MIT */
/*
 * The connection on which a shard's thread reads tasks for takers that wait, blocked in
 * XREADGROUP. The shard's thread alone.
 */
#ifndef RELAY_TAKER_H
#define RELAY_TAKER_H

#include "relay/link.h"
#include "relay/request.h"

struct taker {
	struct asker *asker;
	struct address server; /* where the connection is */
	struct link link;
	bool reading; /* it has a read outstanding */
};

void taker_init(struct taker *taker, struct asker *asker, uint64_t seed);

/* Read for takers that wait, from that server. Returns when to come again. */
uint64_t taker_pass(struct taker *taker, const struct address *server, uint64_t now_ns);

/* Read what has come. A negative errno: the connection is to be lost; -EROFS: the others too. */
int taker_read(struct taker *taker, uint64_t now_ns);

/* Close it. Returns whether tasks that Redis has given us may be lost on it. */
bool taker_lose(struct taker *taker, int why, uint64_t now_ns);

#endif
