/* SPDX-License-Identifier: MIT */
/*
 * Declares the open queue, struct timerhub_relay. relay.c has open and close. change.c has put,
 * cancel, move, done and retry. take.c delivers. A queue is spread over one or more servers, its
 * shards. Each call goes to the shard that has the task.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "journal/fork_check.h"
#include "relay/shard.h"

struct timerhub_relay {
	struct shared shared;
	struct fork_check fork_check;
	uint64_t seed; /* random number in the ids that put makes */
	struct shard *shards;

	/* The lock of `shared` protects the fields below. */
	uint64_t ids;    /* number of ids made so far */
	uint32_t turn;   /* the shard that the next take with no timeout asks first */
	uint32_t inside; /* number of threads inside take */
	bool ended;      /* a take after stop found nothing prefetched; all later takes fail */
};

/* ---- for the daemon ---- */

/* Does what timerhub_relay_open() does. */
int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher);

/* ---- for callers; the lock is not held ---- */

/* Returns the shard that keeps the task of this id. */
struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id);

/* Returns 0 if calls are allowed, -EINVAL without a relay, or -EOWNERDEAD in a forked child. */
int relay_may_call(const struct timerhub_relay *relay);

#endif
