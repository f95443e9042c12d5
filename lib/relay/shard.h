/* SPDX-License-Identifier: MIT */
/*
 * One server's part of a queue: a thread, which alone has the connections, and its parts. The
 * thread sends what callers have gathered, hands out replies, reads ahead for takers, looks if it
 * serves, and sleeps until a reply, a caller, a bell or a time. It holds the lock for memory alone.
 */
#ifndef RELAY_SHARD_H
#define RELAY_SHARD_H

#include "relay/commands.h"
#include "relay/mailbox.h"
#include "relay/serve.h"
#include "relay/taker.h"

struct shard {
	struct shared *shared;
	struct asker asker;
	struct mailbox mailbox;
	struct commands commands;
	struct taker taker;
	struct serve serve;
	struct nap *nap; /* NULL: not opened yet */
	pthread_t thread;
	bool has_thread;
	struct ticket beginning; /* 0, then 1: the thread sleeps and wakes, or could not begin */
	int begun;               /* written by the thread before that: 0, or why not */
};

/* The asker's name and keys are written; `seed` spreads retries. */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/* Make the first connection, for the timeout of a call. */
int shard_open(struct shard *shard);
int shard_start(struct shard *shard);

/* End the threads, which first give back the deliveries that no caller has taken. */
void shards_end(struct shard *shards, uint32_t count);

/* Free what it has. Its thread has ended. One opened halfway is fine, and so is a forked child. */
void shard_fini(struct shard *shard);

#endif
