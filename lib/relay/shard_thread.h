/* SPDX-License-Identifier: MIT */
/*
 * The thread that owns all connections to one server, which together are a shard. It sends requests
 * and hands out their replies, prefetches deliveries for takers, and polls the queue if this relay
 * serves it. It sleeps until a reply or a message comes, a caller wakes it or a deadline has
 * passed, and it never blocks while it holds the relay's lock.
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
	struct takers_connection takers;
	struct scheduler scheduler;
	struct sentinel_watch watch;
	struct sleeper *sleeper; /* the sleeper of the thread, or NULL if not open */
	bool serves;             /* the thread's copy of shared.serves, which callers change */
	pthread_t thread;
	bool has_thread;
	/*
	 * What the thread last told the open about its server: SHARD_UNTRIED, 0 if it is connected,
	 * or the error of the last try. The relay's lock protects it.
	 */
	int told;
};

#define SHARD_UNTRIED 1

/*
 * Prepares a shard, whose client has its `keys` and `shard` set already. `seed` spreads the retries
 * of different relays.
 */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/*
 * Starts the shard's thread, which connects to the server and tries again until the shard ends.
 * Returns 0 or a negative errno of the kernel's; `told` says how the server answers.
 */
int shard_start(struct shard *shard);

/* Ends the threads of all shards. Each first gives its prefetched deliveries back to Redis. */
void shards_end(struct shard *shards, uint32_t count);

/* Frees a shard whose thread has ended or was never started. */
void shard_fini(struct shard *shard);

/*
 * Closes the descriptors of a forked child's copy, and nothing else, because the thread may have
 * been changing the rest at the fork.
 */
void shard_leave(struct shard *shard);

#endif
