/* SPDX-License-Identifier: MIT */
/*
 * Declares the state that callers and the shards' threads share: config, deliveries, counters, and
 * the eventcount of takers. The module makes no system calls but futex(2) and writes to the fd.
 */
#ifndef RELAY_SHARED_H
#define RELAY_SHARED_H

#include <stdbool.h>
#include <timerhub_relay.h>

#include "journal/eventcount.h"
#include "journal/lock.h"
#include "relay/delivery_table.h"

#define SHARED_CONSUMER_BYTES 128

/*
 * A callback for the daemon. timerhub_relay_open() calls the callback, and later the shards'
 * threads do.
 */
struct watcher {
	/*
	 * The argument `error` is 0 after a look, or a negative errno if the server is unreachable
	 * or refuses looks.
	 */
	void (*tell)(void *arg, uint32_t shard, int error);
	void *arg;
};

struct shared {
	/* Open writes the fields down to `ready_fd` before it starts threads. */
	struct watcher watcher; /* callback of the daemon; `tell` may be NULL */
	char consumer[SHARED_CONSUMER_BYTES];
	bool serves;
	uint64_t timeout_ns;
	uint64_t horizon_us;
	uint64_t grace_us;
	uint32_t batch;
	uint32_t replicas; /* number of replicas that must confirm a change; 0: none */
	uint32_t shard_count;
	int ready_fd;

	/* The lock protects all fields below, except the number of the eventcount. */
	struct lock lock;
	struct deliveries deliveries;
	struct eventcount takers; /* eventcount on which takers wait */
	uint64_t hold_ns;         /* how long a put may wait for a put in flight */
	uint64_t lease_ns;        /* lease of the queue, from the server of the last connection */
	uint32_t waiting;         /* number of waiting takers */
	uint64_t wait_until_ns;   /* latest deadline of a waiting taker */
	bool watched;             /* a caller has the fd, so prefetch */
	bool stopped;             /* a take returns prefetched tasks only */
	bool closing;             /* every take returns -ESHUTDOWN, and the threads end */
	struct timerhub_relay_stats stats;
};

/* If deliveries are prefetched, make the fd readable and wake takers. The lock is held. */
void shared_show_prefetched(struct shared *shared);

/* Wake every taker. The lock is held. */
void shared_wake_takers(struct shared *shared);

/* Call the watcher's `tell`, if there is one. The lock is not held. */
void shared_tell(const struct shared *shared, uint32_t shard, int error);

#endif
