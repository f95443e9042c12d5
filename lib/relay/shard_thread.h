/* SPDX-License-Identifier: MIT */
/*
 * The thread that owns all connections to one server, which together are a shard. It sends requests
 * and hands out their replies, prefetches deliveries for takers, and polls the queue if this relay
 * serves it. It sleeps until a reply or a message comes, a caller wakes it or a deadline has
 * passed, and it never blocks while it holds the relay's lock.
 */
#ifndef RELAY_SHARD_THREAD_H
#define RELAY_SHARD_THREAD_H

#include "relay/shard.h"

/* Starts the thread, which connects again and again. Returns 0 or an error of the kernel. */
int shard_start(struct shard *shard);

/* Ends the threads of all shards, which first give untaken tasks back to Redis. */
void shards_end(struct shard *shards, uint32_t count);

#endif
