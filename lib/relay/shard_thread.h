/* SPDX-License-Identifier: MIT */
/*
 * The thread that owns all connections to one server (together a shard): sends requests, hands out
 * replies, prefetches for takers, and looks if the relay serves. Sleeps until a reply, a bell, a
 * caller or a deadline; never blocks with the relay's lock.
 */
#ifndef RELAY_SHARD_THREAD_H
#define RELAY_SHARD_THREAD_H

#include "relay/shard.h"

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

#endif
