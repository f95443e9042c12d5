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

/*
 * Starts the shard's thread, which connects to the server, and tries again if that fails. Returns 0
 * or an error of the kernel; `told` says whether the server is connected.
 */
int shard_start(struct shard *shard);

/*
 * Ends the threads of all shards. Each thread first gives back to Redis the tasks that it has read
 * and that no caller has taken.
 */
void shards_end(struct shard *shards, uint32_t count);

#endif
