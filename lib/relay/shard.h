/* SPDX-License-Identifier: MIT */
/*
 * Runs the thread that owns all connections to one server of a queue. The server and its thread are
 * a shard. The thread sends the requests of callers, gives them the replies, prefetches tasks for
 * takers, and looks if the relay serves the queue. It sleeps until a reply or a bell comes, a
 * caller wakes it, or a time is reached. It never blocks with the lock held.
 */
#ifndef RELAY_SHARD_H
#define RELAY_SHARD_H

#include "relay/commands.h"
#include "relay/mailbox.h"
#include "relay/serve.h"
#include "relay/taker.h"

struct shard {
	struct shared *shared;
	struct client client;
	struct mailbox mailbox;
	struct commands commands;
	struct taker taker;
	struct serve serve;
	struct sleeper *sleeper; /* NULL: not opened yet */
	pthread_t thread;
	bool has_thread;
	struct eventcount beginning; /* 1: the thread runs, or could not begin */
	int begun;                   /* written before `beginning`: 0 or the error */
};

/* Call it when the client's name and keys are set. `seed` spreads retries. */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/* Make the first connection, within the timeout of a call. */
int shard_open(struct shard *shard);
int shard_start(struct shard *shard);

/* End the threads of the shards. Each thread first returns its prefetched deliveries to Redis. */
void shards_end(struct shard *shards, uint32_t count);

/*
 * Free the memory of a shard whose thread has ended. The shard may be half open, or the copy in a
 * forked child.
 */
void shard_fini(struct shard *shard);

#endif
