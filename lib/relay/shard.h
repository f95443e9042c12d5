/* SPDX-License-Identifier: MIT */
/*
 * A shard: one server of a queue, with a thread that owns all connections to it. The thread sends
 * the requests of callers, answers them, prefetches for takers, and looks if the relay serves. It
 * sleeps until a reply, a caller, a bell or a time. It never blocks with the lock held.
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
	struct eventcount beginning; /* 0, then 1: the thread runs, or could not begin */
	int begun;                   /* written before `beginning`: 0 or the error */
};

/* The asker's name and keys are written; `seed` spreads retries. */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/* Make the first connection, for the timeout of a call. */
int shard_open(struct shard *shard);
int shard_start(struct shard *shard);

/* End the threads. They first return the prefetched deliveries. */
void shards_end(struct shard *shards, uint32_t count);

/*
 * Free what it has. Its thread has ended. The shard may be half open, or the copy in a forked
 * child.
 */
void shard_fini(struct shard *shard);

#endif
