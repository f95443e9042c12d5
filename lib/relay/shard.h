/* SPDX-License-Identifier: MIT */
/*
 * A shard: one server, the four connections that its thread has there, and what they need. Only the
 * shard's thread calls these functions once it runs.
 */
#ifndef RELAY_SHARD_H
#define RELAY_SHARD_H

#include "relay/mailbox.h"
#include "relay/pipeline.h"
#include "relay/scheduler.h"
#include "relay/sentinel_watch.h"
#include "relay/takers_connection.h"

struct shard {
	struct shared *shared;
	struct client client;
	struct mailbox mailbox;
	struct pipeline pipeline;
	struct takers_connection takers;
	struct scheduler scheduler;
	struct sentinel_watch watch;
	struct sleeper *sleeper; /* the sleeper of the thread, or NULL if not open */
	bool serves;             /* copy of shared.serves, which callers change */
	pthread_t thread;
	bool has_thread;
	/*
	 * What the thread last told the open about its server: SHARD_UNTRIED, 0 if it is connected,
	 * or the error of the last try. The relay's lock protects it.
	 */
	int told;
};

#define SHARD_UNTRIED 1

/* Prepares a shard whose client has its `keys` and `shard`. `seed` spreads the relays' retries. */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/* Frees a shard whose thread has ended, or which is partly open. */
void shard_fini(struct shard *shard);

/*
 * Closes the descriptors of a forked child's copy, and nothing else, because the thread may have
 * been changing the rest.
 */
void shard_leave(struct shard *shard);

/* Closes the connection for commands, and with it that of the bells, and begins a back-off. */
void shard_lose_commands(struct shard *shard, int why, uint64_t now_ns);

/* Closes the takers' connection, with which deliveries may be lost, and begins a back-off. */
void shard_lose_takers(struct shard *shard, int why, uint64_t now_ns);

/* Closes each connection of takers and bells whose reply is overdue. */
void shard_lose_overdue(struct shard *shard, uint64_t now_ns);

/* Sends the buffered commands of all connections. Returns false if a connection was lost. */
bool shard_flush(struct shard *shard);

/* Sleeps until `until_ns` or until a connection is ready, and then reads from all ready ones. */
void shard_wait_and_read(struct shard *shard, uint64_t until_ns);

#endif
