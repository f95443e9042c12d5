/* SPDX-License-Identifier: MIT */
/*
 * What callers and the shards' threads share: the configuration, the deliveries, the counters, and
 * the eventcount on which takers wait. These functions make no system calls but futex(2) and writes
 * to `ready_fd`.
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
 * A callback by which the daemon timerhub-relay learns of errors of servers. relay_open() and the
 * shards' threads call it.
 */
struct watcher {
	/*
	 * is called with 0 after a poll of the queue, or with the errno for which the server cannot
	 * be reached or refuses
	 */
	void (*tell)(void *arg, uint32_t shard, int error);
	void *arg;
};

struct shared {
	/*
	 * relay_open() writes the fields from `watcher` to `ready_fd` before it starts threads, and
	 * nobody afterwards.
	 */
	struct watcher watcher; /* the daemon's callback for errors; `tell` may be NULL */
	char consumer[SHARED_CONSUMER_BYTES];
	bool never_serves; /* the config has TIMERHUB_RELAY_NO_SERVE */
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
	/* the open waits on it; it is raised whenever a shard's `told` changes */
	struct eventcount tries;
	uint64_t hold_ns;       /* how long a put may wait for the reply to a put in flight */
	uint32_t waiting;       /* number of waiting takers */
	uint64_t wait_until_ns; /* latest deadline of the waiting takers */
	bool serves;  /* this relay serves the queue, from the open on or from the first take on */
	bool takes;   /* a caller has begun to take */
	bool watched; /* a caller has the fd and may poll it */
	/* The caller that has the fd has found no task, so one is prefetched for it. */
	bool armed;
	bool stopped; /* the relay was stopped, and takers get prefetched tasks only */
	/* When reads for takes give up, after a stop or in a close; UINT64_MAX before that. */
	uint64_t reads_end_ns;
	bool closing; /* the queue is closing: timerhub_relay_take() returns -ESHUTDOWN */
	bool ending;  /* no call is left, and the threads end */
	struct timerhub_relay_stats stats;
};

/*
 * Makes prefetched deliveries known: raises `ready_fd`, and wakes a waiting taker for each. Called
 * with the lock.
 */
void shared_show_prefetched(struct shared *shared);

/* Wakes every taker. Called with the relay's lock. */
void shared_wake_takers(struct shared *shared);

/* Tells the watcher of an error, if there is a watcher. Called without the lock. */
void shared_tell(const struct shared *shared, uint32_t shard, int error);

#endif
