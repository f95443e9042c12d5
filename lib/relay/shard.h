/* SPDX-License-Identifier: MIT */
/*
 * Runs the thread that owns all connections to one server of a queue. The server and its thread are
 * a shard. The thread sends the requests of callers, gives them the replies, prefetches tasks for
 * takers, and looks if the relay serves the queue. The thread sleeps until a reply or a bell comes,
 * a caller wakes the thread, or a deadline is reached. The thread never blocks with the lock held.
 */
#ifndef RELAY_SHARD_H
#define RELAY_SHARD_H

#include "relay/mailbox.h"
#include "relay/pipeline.h"
#include "relay/serve.h"
#include "relay/taker.h"

struct shard {
	struct shared *shared;
	struct client client;
	struct mailbox mailbox;
	struct pipeline pipeline;
	struct taker taker;
	struct serve serve;
	struct sleeper *sleeper; /* the thread's sleep; NULL: not opened yet */
	pthread_t thread;
	bool has_thread;
	struct eventcount beginning; /* 1: the thread runs, or its start has failed */
	/* Result of the start, 0 or an error; written before `beginning`. */
	int begun;
};

/* Initialize a shard whose client has its name and keys. The argument `seed` spreads retries. */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/*
 * shard_open() makes the first connection, within the timeout of a call. shard_start() starts the
 * thread.
 */
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
