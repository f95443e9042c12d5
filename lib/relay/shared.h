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
	 * Called with 0 after a poll of the queue, or with a negative errno if the server cannot be
	 * reached or refuses the relay.
	 */
	void (*tell)(void *arg, uint32_t shard, int error);
	void *arg;
};

struct shared {
	/*
	 * The fields before `lock` are written before any thread is started, and never afterwards.
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
	 * The relay's lock. It protects all fields below, except that an eventcount's number may be
	 * read without it.
	 */
	struct lock lock;
	struct deliveries deliveries;
	struct eventcount takers; /* eventcount on which takers wait */
	/*
	 * The eventcount on which timerhub_relay_open() waits. It is advanced whenever the
	 * connection to a server was made or has failed.
	 */
	struct eventcount tries;
	uint64_t hold_ns;       /* how long a put may wait for the reply to a put in flight */
	uint32_t waiting;       /* number of waiting takers */
	uint64_t wait_until_ns; /* latest deadline of the waiting takers */
	bool serves;  /* this relay serves the queue, from the open on or from the first take on */
	bool takes;   /* a caller has begun to take */
	bool watched; /* a caller has the fd and may poll it */
	/*
	 * True if the program uses timerhub_relay_fd(), and has no task since its last take with
	 * timeout 0, or since the first call of timerhub_relay_fd(). The library then reads one
	 * task from Redis in advance, and makes the descriptor readable.
	 */
	bool armed;
	bool stopped; /* the relay was stopped, and takers get prefetched tasks only */
	/*
	 * Reads for timerhub_relay_take() wait for a server until this time at most. It is
	 * UINT64_MAX, no limit, until the relay is stopped or closed.
	 */
	uint64_t reads_end_ns;
	bool closing; /* the queue is closing: timerhub_relay_take() returns -ESHUTDOWN */
	bool ending;  /* no call is left, and the threads end */
	struct timerhub_relay_stats stats;
};

/*
 * If a task can be taken at once, makes the descriptor of timerhub_relay_fd() readable, and wakes
 * one waiting caller for each task. Called with the relay's lock held.
 */
void shared_show_prefetched(struct shared *shared);

/* Wakes all threads that wait in timerhub_relay_take(). Called with the relay's lock held. */
void shared_wake_takers(struct shared *shared);

/*
 * Tells the daemon timerhub-relay, by its callback, that a server has answered (0) or failed (a
 * negative errno). In other programs it does nothing. Called without the relay's lock.
 */
void shared_tell(const struct shared *shared, uint32_t shard, int error);

#endif
