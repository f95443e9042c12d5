/* SPDX-License-Identifier: MIT */
/*
 * The thread that owns all connections to one server (together a shard): sends requests, hands out
 * replies, prefetches for takers, and looks if the relay serves. Sleeps until a reply, a bell, a
 * caller or a deadline; never blocks with the relay's lock.
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

/* `keys` and `shard` of its `client` are set. `seed` spreads different relays' retries. */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/*
 * Starts the shard's thread, which connects to the server and tries again until the shard ends.
 * Returns 0 or a negative errno of the kernel's; `told` says how the server answers.
 */
int shard_start(struct shard *shard);

/*
 * End the threads of all shards. Before a thread ends, it returns its prefetched deliveries to
 * Redis.
 */
void shards_end(struct shard *shards, uint32_t count);

/* Its thread has ended, or it is partly open. */
void shard_fini(struct shard *shard);

/* A forked child's copy: only descriptors, since the thread may have been changing the rest. */
void shard_leave(struct shard *shard);

#endif
