/* SPDX-License-Identifier: MIT */
/*
 * What callers and the shards' threads share: the config, the hand, the counters, and what takers
 * wait for. Memory only.
 */
#ifndef RELAY_SHARED_H
#define RELAY_SHARED_H

#include <stdbool.h>
#include <timerhub_relay.h>

#include "journal/eventcount.h"
#include "journal/lock.h"
#include "relay/delivery.h"

#define SHARED_CONSUMER_BYTES 128

/* For the daemon. Open tells it, and then the shards' threads. */
struct watcher {
	/* A negative errno: the server is not there, or refuses to be looked at; 0: a look. */
	void (*tell)(void *arg, uint32_t shard, int error);
	void *arg;
};

struct shared {
	/* Written by open, before there are threads. */
	struct watcher watcher; /* tell may be NULL */
	char consumer[SHARED_CONSUMER_BYTES];
	bool serves;
	uint64_t timeout_ns;
	uint64_t horizon_us;
	uint64_t grace_us;
	uint32_t batch;
	uint32_t replicas; /* that must hold a fact; 0: none need */
	uint32_t shard_count;
	int ready_fd;

	/* Everything below: under the lock, except the ticket's number. */
	struct lock lock;
	struct deliveries deliveries;
	struct ticket takers;   /* what takers wait for */
	uint64_t hold_ns;       /* the longest that a put waits for one under way */
	uint64_t lease_ns;      /* by the server that was last connected to */
	uint32_t waiting;       /* takers waiting */
	uint64_t wait_until_ns; /* the latest that one of them waits */
	bool watched;           /* the fd was asked for: read ahead */
	bool stopped;           /* no take waits or asks Redis any more */
	bool closing;           /* takers are sent away, and the threads end */
	struct timerhub_relay_stats stats;
};

/* Let takers know of what is in the hand. The lock is held. */
void shared_show_hand(struct shared *shared);

/* Wake every taker. The lock is held. */
void shared_wake_takers(struct shared *shared);

/* Tell the watcher, if there is one. The lock is not held. */
void shared_tell(const struct shared *shared, uint32_t shard, int error);

#endif
