/* SPDX-License-Identifier: MIT */
/*
 * Runs the thread that owns all connections to one server of a queue. A server and its thread are a
 * shard. The thread sends the requests of callers, gives the replies to the callers, and prefetches
 * tasks for takers. If the relay serves the queue, the thread also calls timerhub_look, which moves
 * due tasks. The thread sleeps until a reply or a bell message comes, a caller wakes the thread, or
 * a deadline is reached. The thread never blocks while it holds the relay's lock.
 */
#ifndef RELAY_SHARD_THREAD_H
#define RELAY_SHARD_THREAD_H

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
	struct taker taker;
	struct scheduler scheduler;
	struct sentinel_watch watch;
	struct sleeper *sleeper; /* the sleeper of the thread, or NULL if not open */
	pthread_t thread;
	bool has_thread;
	struct eventcount beginning; /* becomes 1 when the thread runs or its start has failed */
	/* Result of the thread's start, 0 or an error; written before `beginning`. */
	int begun;
};

/*
 * Initialize a shard. The caller must have set `keys` and `shard` in the shard's `client`. The
 * argument `seed` spreads the retries of different relays.
 */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/*
 * shard_open() makes the first connection within the timeout of a call. shard_start() starts the
 * shard's thread.
 */
int shard_open(struct shard *shard);
int shard_start(struct shard *shard);

/*
 * End the threads of all shards. Before a thread ends, it returns its prefetched deliveries to
 * Redis.
 */
void shards_end(struct shard *shards, uint32_t count);

/*
 * Close the connections of a shard whose thread has ended. The shard may be partly opened, or may
 * be the copy in a forked child.
 */
void shard_fini(struct shard *shard);

#endif
