/* SPDX-License-Identifier: MIT */
/*
 * What callers and shards' threads share: config, deliveries, counters, takers' eventcount. System
 * calls: futex(2) and writes to `ready_fd`.
 */
#ifndef RELAY_SHARED_H
#define RELAY_SHARED_H

#include <stdbool.h>
#include <timerhub_relay.h>

#include "base/eventcount.h"
#include "base/lock.h"
#include "relay/delivery_table.h"

#define SHARED_CONSUMER_BYTES 128

/*
 * A callback that tells the daemon timerhub-relay about errors of servers. relay_open() and the
 * shards' threads call it.
 */
struct watcher {
	/* 0 after a look, or why the server can't be reached or refuses */
	void (*tell)(void *arg, uint32_t shard, int error);
	void *arg;
};

struct shared {
	/* relay_open() writes the fields from `watcher` to `ready_fd` before it starts threads. */
	struct watcher watcher; /* the daemon's callback for errors; `tell` may be NULL */
	char consumer[SHARED_CONSUMER_BYTES];
	bool never_serves; /* TIMERHUB_RELAY_NO_SERVE */
	uint64_t timeout_ns;
	uint64_t horizon_us;
	uint64_t grace_us;
	uint32_t batch;
	uint32_t replicas; /* number of replicas that must confirm a change, or 0 */
	uint32_t shard_count;
	int ready_fd;

	/*
	 * The relay's lock, which protects all fields below, except the number of the eventcount.
	 */
	struct lock lock;
	struct deliveries deliveries;
	struct eventcount takers; /* eventcount on which takers wait */
	struct eventcount tries;  /* rises whenever a shard's `told` changes, for the open */
	uint64_t hold_ns;         /* how long a put may wait for the reply to a put in flight */
	uint32_t waiting;         /* number of waiting takers */
	uint64_t wait_until_ns;   /* latest deadline of the waiting takers */
	bool serves;              /* from open on, or from the first take on */
	bool takes;               /* a caller has begun to take */
	bool watched;             /* a caller has the fd and may poll it */
	/* The caller with the fd has found no task, so one is prefetched for it. */
	bool armed;
	bool stopped; /* the queue was stopped, and takers get prefetched tasks only */
	/* When reads of takes give up, after a stop or in a close; or UINT64_MAX. */
	uint64_t reads_end_ns;
	bool closing; /* the queue is closing: timerhub_relay_take() returns -ESHUTDOWN */
	bool ending;  /* no call is left, and the threads end */
	struct timerhub_relay_stats stats;
};

/* `ready_fd`, and a waiting taker for each. Under the lock. */
void shared_show_prefetched(struct shared *shared);

/* Wake every taker. The caller holds the relay's lock. */
void shared_wake_takers(struct shared *shared);

/* To the watcher, if any. Without the lock. */
void shared_tell(const struct shared *shared, uint32_t shard, int error);

#endif
